/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arithmetic of values and passes. It compiles as BPF and natively: tests compare it
 * with prorata-core on random inputs.
 *
 * A worth is the value of a ticket, a currency or a task: a floating-point number of
 * base tickets, never negative. Each operation rounds down by less than 2^-30 of its
 * result, so a chain of sixteen currencies loses less than 2^-25.
 *
 * A pass counts units of 2^-PASS_BITS ns of CPU time for each base ticket, and wraps
 * around. A wait is the difference of two passes.
 */
#ifndef PRORATA_ARITHMETIC_H
#define PRORATA_ARITHMETIC_H

#define PASS_BITS 20

/*
 * The largest distance of a pass from the present one. A larger debt or credit is cut,
 * so that passes stay comparable although they wrap around.
 */
#define LONGEST_WAIT (1LL << 60)

/* One charge counts for this much service at most, some four seconds. */
#define MAX_SERVICE_NS 0xffffffffULL

/* Fractional bits of a factor drawn by chanced(). */
#define CHANCE_BITS 26

/*
 * A worth: mantissa * 2^exponent. The upper half holds the exponent (s32), the lower
 * half the mantissa with its highest bit set. All bits of a zero are clear.
 */
typedef u64 worth_t;

static inline u64 mantissa_of(worth_t worth)
{
	return worth & 0xffffffff;
}

static inline s32 exponent_of(worth_t worth)
{
	return (s32)(worth >> 32);
}

static inline worth_t to_worth(u64 mantissa, s32 exponent)
{
	return (u64)(u32)exponent << 32 | mantissa;
}

/* Leading zeros. The number must not be zero. */
static inline u32 zeros_above(u64 number)
{
	return __builtin_clzll(number);
}

static inline worth_t worth_of(u64 amount)
{
	u32 zeros;

	if (!amount)
		return 0;
	zeros = zeros_above(amount);
	return to_worth(amount << zeros >> 32, 32 - (s32)zeros);
}

static inline worth_t worth_multiply(worth_t a, worth_t b)
{
	u64 product = mantissa_of(a) * mantissa_of(b);
	u32 zeros = !(product >> 63);

	if (!product)
		return 0;
	return to_worth(product << zeros >> 32, exponent_of(a) + exponent_of(b) + 32 - (s32)zeros);
}

/* Zero if either is zero. */
static inline worth_t worth_divide(worth_t a, worth_t b)
{
	u64 quotient;
	u32 excess;

	if (!mantissa_of(a) || !mantissa_of(b))
		return 0;
	quotient = (mantissa_of(a) << 32) / mantissa_of(b);
	excess = quotient >> 32 ? 1 : 0;
	return to_worth(quotient >> excess, exponent_of(a) - exponent_of(b) - 32 + (s32)excess);
}

static inline worth_t worth_add(worth_t a, worth_t b)
{
	s32 distance;
	u64 sum;
	u32 excess;

	if (!mantissa_of(a))
		return b;
	if (!mantissa_of(b))
		return a;
	distance = exponent_of(a) - exponent_of(b);
	if (distance < 0) {
		worth_t other = a;

		a = b;
		b = other;
		distance = -distance;
	}
	if (distance > 31)
		return a;
	sum = mantissa_of(a) + (mantissa_of(b) >> distance);
	excess = sum >> 32 ? 1 : 0;
	return to_worth(sum >> excess, exponent_of(a) + (s32)excess);
}

/* number * 2^shift, rounded down, at most LONGEST_WAIT. */
static inline u64 scaled(u64 number, s32 shift)
{
	if (shift < 0)
		number = shift > -64 ? number >> -shift : 0;
	else if (shift >= 60 || number >> (60 - shift))
		return number ? LONGEST_WAIT : 0;
	else
		number <<= shift;
	return number < LONGEST_WAIT ? number : LONGEST_WAIT;
}

/*
 * How far a pass moves for each ns of service: mantissa * 2^shift, with a mantissa of up
 * to 33 bits. This is the stride (1995, 2.1) without the quantum, which cancels out.
 * Without tickets the stride is zero: such entities wait in another order, see key_of().
 */
struct stride {
	u64 mantissa;
	s32 shift;
	u32 unused;
};

static inline struct stride stride_of(worth_t tickets)
{
	struct stride stride = {};

	if (!mantissa_of(tickets))
		return stride;
	stride.mantissa = (1ULL << 63) / mantissa_of(tickets);
	stride.shift = PASS_BITS - 63 - exponent_of(tickets);
	return stride;
}

/* How far a pass moves for this service, of which MAX_SERVICE_NS count. */
static inline u64 wait_by(struct stride stride, u64 service_ns)
{
	if (service_ns > MAX_SERVICE_NS)
		service_ns = MAX_SERVICE_NS;
	return scaled(service_ns * stride.mantissa, stride.shift);
}

/* The service (ns) that is due to these tickets while passes move by this wait. */
static inline u64 service_in(u64 wait, worth_t tickets)
{
	worth_t service = worth_multiply(worth_of(wait), tickets);

	return scaled(mantissa_of(service), exponent_of(service) - PASS_BITS);
}

/*
 * What remains of a wait, positive or not, when the tickets change (1995, 2.3 and
 * Figure 5: remain' = remain * stride' / stride). A change from or to no tickets leaves
 * it as it is.
 */
static inline s64 rescaled(s64 remain, worth_t from, worth_t to)
{
	u64 size = remain < 0 ? -(u64)remain : (u64)remain;
	worth_t result;

	if (from == to || !mantissa_of(from) || !mantissa_of(to))
		return remain;
	result = worth_divide(worth_multiply(worth_of(size), from), to);
	size = scaled(mantissa_of(result), exponent_of(result));
	return remain < 0 ? -(s64)size : (s64)size;
}

/* Within LONGEST_WAIT of zero. */
static inline s64 held(s64 wait)
{
	if (wait > LONGEST_WAIT)
		return LONGEST_WAIT;
	if (wait < -LONGEST_WAIT)
		return -LONGEST_WAIT;
	return wait;
}

/* Whether a pass is smaller than another one; passes wrap around. */
static inline bool before(u64 pass, u64 other)
{
	return (s64)(pass - other) < 0;
}

/* -ln(step / 128) for the steps from 64 to 128, in units of 2^-56. The first is ln 2. */
static const u64 minus_ln_of_step[65] = {
	0x00b17217f7d1cf79ULL, 0x00ad7a02e1b24efdULL, 0x00a991713433c2b9ULL, 0x00a5b7eb7cb860fbULL,
	0x00a1ecff97c91e26ULL, 0x009e304061b5fda9ULL, 0x009a81456cec642dULL, 0x0096dfaabd86fa16ULL,
	0x00934b1089a6dc93ULL, 0x008fc31afe30b2c6ULL, 0x008c47720791e533ULL, 0x0088d7c11e3ad53cULL,
	0x008573b71682a7d2ULL, 0x00821b05f3b01d67ULL, 0x007ecd62bde92210ULL, 0x007b8a855ad04f93ULL,
	0x00785228689c9b36ULL, 0x007524091b7be9adULL, 0x0071ffe71d155324ULL, 0x006ee5846e038becULL,
	0x006bd4a549233741ULL, 0x0068cd100893e9e3ULL, 0x0065ce8d0c4d5ab7ULL, 0x0062d8e6a22cb7d2ULL,
	0x005febe8ef60546fULL, 0x005d0761db19eec5ULL, 0x005a2b20fa71a850ULL, 0x005756f77d657cbeULL,
	0x00548ab81ce28f5fULL, 0x0051c63709c7106cULL, 0x004f0949dcccc60eULL, 0x004c53c7874d738eULL,
	0x0049a58844d36e49ULL, 0x0046fe658d69ae53ULL, 0x00445e3a089f91efULL, 0x0041c4e181356189ULL,
	0x003f3238d96766f2ULL, 0x003ca61dffce2024ULL, 0x003a206fe4cabcf6ULL, 0x0037a10e7077b15aULL,
	0x003527da7915b3c6ULL, 0x0032b4b5b9ee02feULL, 0x00304782caa34783ULL, 0x002de02516ead577ULL,
	0x002b7e80d6a87b63ULL, 0x0029227b06676ac1ULL, 0x0026cbf9602b202cULL, 0x00247ae254938403ULL,
	0x00222f1d044fc8f7ULL, 0x001fe89139dbd565ULL, 0x001da727638446a2ULL, 0x001b6ac88dad5b1bULL,
	0x0019335e5d594988ULL, 0x001700d30aeac0e0ULL, 0x0014d3115d207eacULL, 0x0012aa04a44717a4ULL,
	0x00108598b59e3a06ULL, 0x000e65b9e6eed965ULL, 0x000c4a550a4fd9a1ULL, 0x000a33576a16f1f4ULL,
	0x000820aec4f3a222ULL, 0x000612494a3232afULL, 0x000408159624d611ULL, 0x00020202aeb11bceULL,
	0x0000000000000000ULL,
};

/* Signed division that rounds towards zero: BPF only divides unsigned numbers. */
static inline s64 divided(s64 number, u64 divisor)
{
	return number < 0 ? -(s64)(-(u64)number / divisor) : (s64)((u64)number / divisor);
}

/*
 * -ln(u) in units of 2^-40, for the number u between 0 and 1 that these 64 bits stand for.
 * From uniform bits it is exponentially distributed with mean 1. It equals the core's bit
 * for bit (policy/race_exponential.rs explains the steps).
 */
static inline u64 minus_ln(u64 bits)
{
	u64 mantissa, step, logarithm;
	s64 r, square, cube, fourth, series;
	u32 shift, place;

	bits |= 1;
	shift = zeros_above(bits);
	mantissa = bits << shift;
	step = ((mantissa >> 56) + 1) >> 1;
	r = divided((s64)(mantissa - (step << 57)), 2 * step);
	square = ((r >> 20) * (r >> 20)) >> 16;
	cube = ((square >> 20) * (r >> 20)) >> 16;
	fourth = ((square >> 20) * (square >> 20)) >> 16;
	series = divided(square, 2) - divided(cube, 3) + divided(fourth, 4) - r;
	place = step - 64;
	if (place > 64)
		place = 64;
	logarithm = shift * minus_ln_of_step[0] + minus_ln_of_step[place];
	if (series < 0 && logarithm < -(u64)series)
		return 0;
	return (logarithm + series) >> 16;
}

/* Service times an exponentially distributed factor: what it counts for in a lottery. */
static inline u64 chanced(u64 service_ns, u64 bits)
{
	if (service_ns > MAX_SERVICE_NS)
		service_ns = MAX_SERVICE_NS;
	return (service_ns * (minus_ln(bits) >> (40 - CHANCE_BITS))) >> CHANCE_BITS;
}

#endif
