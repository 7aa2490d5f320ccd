"""Pfair scheduling (PD2) in SimSo: equal tasks that fill all CPUs.

Arguments: CPUs, tasks, quanta. Prints decisions per second of CPU time.
"""

import json
import sys
import time

from simso.configuration import Configuration
from simso.core import Model
from simso.schedulers.PD2 import PD2

CPUS, TASKS, QUANTA = map(int, sys.argv[1:])
# SimSo's PD2 has ten quanta a millisecond. Each task gets CPUS of TASKS quanta.
PERIOD_MS = TASKS / 10

decisions = 0
schedule = PD2.schedule


def counted(self, cpu):
    global decisions
    decided = schedule(self, cpu)
    decisions += len(decided or ())
    return decided


PD2.schedule = counted
configuration = Configuration()
configuration.duration = int(QUANTA * configuration.cycles_per_ms / 10)
for number in range(1, TASKS + 1):
    configuration.add_task(
        name=f"T{number}", identifier=number, period=PERIOD_MS,
        activation_date=0, wcet=CPUS / 10, deadline=PERIOD_MS,
    )
for number in range(1, CPUS + 1):
    configuration.add_processor(name=f"C{number}", identifier=number)
configuration.scheduler_info.clas = "simso.schedulers.PD2"
configuration.check_all()
model = Model(configuration)
begin = time.process_time()
model.run_model()
seconds = time.process_time() - begin
print(json.dumps({"decisions": decisions, "per_second": decisions / seconds}))
