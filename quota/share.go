package quota

import (
	"cmp"
	"math/bits"
	"slices"
)

// Share is how far a queue is above what it owns, as a fraction that is never
// divided out: Above over Lent (what its level lends in all) over Weight. Shares
// are compared by cross-multiplying, so there is no rounding and no false tie.
type Share struct {
	Above, Lent, Weight int64 // Lent 0 counts as the smallest amount, 1
	Resource            int   // the dimension in which the share is largest
}

// idle says that the share is beyond that of every queue of weight above 0.
func (s Share) idle() bool { return s.Above > 0 && s.Weight <= 0 }

// Compare returns -1, 0 or 1 as s is smaller than, equal to or larger than o.
// Queues of weight 0 come after all others and compare as if of one weight.
func (s Share) Compare(o Share) int {
	if s.idle() != o.idle() {
		if s.idle() {
			return 1
		}
		return -1
	}
	if s.Above <= 0 || o.Above <= 0 {
		return cmp.Compare(max(s.Above, 0), max(o.Above, 0))
	}
	sl, ol, sw, ow := max(s.Lent, 1), max(o.Lent, 1), max(s.Weight, 1), max(o.Weight, 1)
	return product3(s.Above, ol, ow).compare(product3(o.Above, sl, sw))
}

// wide is an unsigned number of 192 bits, most significant word first.
type wide [3]uint64

func (w wide) compare(o wide) int {
	for i := range w {
		if c := cmp.Compare(w[i], o[i]); c != 0 {
			return c
		}
	}
	return 0
}

// product3 multiplies three numbers above 0 without loss.
func product3(a, b, c int64) wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	lo1, lo0 := bits.Mul64(lo, uint64(c))
	hi1, hi0 := bits.Mul64(hi, uint64(c))
	mid, carry := bits.Add64(lo1, hi0, 0)
	return wide{hi1 + carry, mid, lo0}
}

// Part is one claimant of a division by weight.
type Part struct {
	Weight int64 // 0 gets nothing; all weights together are at most Most
	Want   int64 // never given more than this
}

// Divide shares total out among parts by weight, none above its want. The
// result is in whole numbers and adds up to total, or to all wants if these are
// less. Nobody gets less than the whole-number part of what exact water filling
// would give; the pieces that rounding leaves go to the largest remainders, then
// to the earlier part.
func Divide(total int64, parts []Part) []int64 {
	got := make([]int64, len(parts))
	open := make([]int, 0, len(parts))
	for i, p := range parts {
		if p.Weight > 0 && p.Want > 0 {
			open = append(open, i)
		}
	}
	left := max(total, 0)
	for len(open) > 0 && left > 0 {
		sum := int64(0)
		for _, i := range open {
			sum = Sum(sum, parts[i].Weight)
		}
		// Whoever wants no more than its part is served in full and leaves the
		// rest to the others; when nobody is, the parts are final.
		rest, pool := open[:0:0], left
		for _, i := range open {
			if part, _ := mulDiv(pool, parts[i].Weight, sum); parts[i].Want <= part {
				got[i] = parts[i].Want
				left -= parts[i].Want
			} else {
				rest = append(rest, i)
			}
		}
		if len(rest) == len(open) {
			divideRest(left, sum, parts, open, got)
			return got
		}
		open = rest
	}
	return got
}

// divideRest gives each open part its floor and the leftovers, one each, to the
// largest remainders. Every open part wants more than its floor, and there are fewer
// leftovers than parts with a remainder.
func divideRest(left, sum int64, parts []Part, open []int, got []int64) {
	rem := make([]uint64, len(parts))
	spare := left
	for _, i := range open {
		got[i], rem[i] = mulDiv(left, parts[i].Weight, sum)
		spare -= got[i]
	}
	slices.SortStableFunc(open, func(i, k int) int { return cmp.Compare(rem[k], rem[i]) })
	for _, i := range open[:spare] {
		got[i]++
	}
}

// mulDiv returns a*b/c and the remainder, exactly. It needs 0 <= b <= c, c > 0.
func mulDiv(a, b, c int64) (int64, uint64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(q), r
}
