/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The buckets of a histogram of durations: exact below 32, then 32 of equal width for each
 * power of two. So a bucket's bounds differ by at most 1/32.
 */
#ifndef PRORATA_HISTOGRAM_H
#define PRORATA_HISTOGRAM_H

#define BUCKETS_OF_OCTAVE 32
#define OCTAVE_BITS	  5
#define WAIT_BUCKETS	  ((64 - OCTAVE_BITS + 1) * BUCKETS_OF_OCTAVE)

/* The bucket of a duration. */
static inline unsigned int bucket_of(unsigned long long duration)
{
	unsigned int octave;

	if (duration < BUCKETS_OF_OCTAVE)
		return duration;
	octave = 63 - __builtin_clzll(duration) - OCTAVE_BITS;
	return (octave + 1) * BUCKETS_OF_OCTAVE + (duration >> octave) - BUCKETS_OF_OCTAVE;
}

#endif
