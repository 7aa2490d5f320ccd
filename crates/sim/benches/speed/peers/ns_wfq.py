"""Weighted fair queueing in ns.py: flows that always have a packet to send.

Arguments: flows, packets to send. Flow i has weight 1 + i % 10. Prints packets
sent per second of CPU time, and by how many packets a flow was ahead or behind
its fluid share at worst.
"""

import json
import sys
import time

import simpy
from ns.packet.packet import Packet
from ns.scheduler.wfq import WFQServer

FLOWS, PACKETS = map(int, sys.argv[1:])
WEIGHTS = [1 + flow % 10 for flow in range(FLOWS)]
TOTAL = sum(WEIGHTS)
SIZE_BYTES = 1000


class Sink:
    def __init__(self):
        self.sent = [0] * FLOWS
        self.packets = 0
        self.worst = 0.0

    def put(self, packet):
        # A flow is furthest behind just before, and ahead just after.
        flow = packet.flow_id
        due = self.packets * WEIGHTS[flow] / TOTAL
        self.worst = max(self.worst, abs(self.sent[flow] - due))
        self.sent[flow] += 1
        self.packets += 1
        due = self.packets * WEIGHTS[flow] / TOTAL
        self.worst = max(self.worst, abs(self.sent[flow] - due))


env = simpy.Environment()
server = WFQServer(env, rate=8.0 * SIZE_BYTES, weights=WEIGHTS)
sink = Sink()
server.out = sink
for round_ in range(2 * PACKETS * 10 // TOTAL + 2):
    for flow in range(FLOWS):
        server.put(Packet(0, SIZE_BYTES, round_, flow_id=flow))
begin = time.process_time()
env.run(until=PACKETS + 0.5)
seconds = time.process_time() - begin
print(json.dumps({"decisions": sink.packets, "per_second": sink.packets / seconds, "worst": sink.worst}))
