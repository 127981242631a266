package quota

import (
	"math/bits"
	"time"
)

// halvings[k] is 2^(-1/2^(k+1)) as a fraction of 2^32, rounded: the factor by which
// an amount falls in a half, a quarter, an eighth ... of a half-life.
var halvings = [...]uint64{
	3037000500, 3611622603, 3938502376, 4112874773, 4202935003, 4248701965, 4271771996, 4283353945,
	4289156690, 4292061010, 4293513907, 4294240540, 4294603903, 4294785595, 4294876445, 4294921870,
}

// Decay returns what is left of v after dt, if it halves in every halfLife. It works
// in whole numbers, so that every machine gets the same.
func Decay(v int64, dt, halfLife time.Duration) int64 {
	if v <= 0 || dt <= 0 || halfLife <= 0 {
		return max(v, 0)
	}
	if dt/halfLife >= 63 {
		return 0
	}
	left := uint64(v) >> uint(dt/halfLife)
	rest := uint64(dt % halfLife)
	for _, factor := range halvings {
		rest *= 2
		if rest >= uint64(halfLife) {
			rest -= uint64(halfLife)
			hi, lo := bits.Mul64(left, factor)
			left = hi<<32 | lo>>32
		}
	}
	return int64(left)
}

// Average returns the running average of a queue's use: was decays, and what was
// used since then, on average, fills the gap. In a steady state it is used itself.
func Average(was, used Resources, dt, halfLife time.Duration) Resources {
	out := make(Resources, max(len(was), len(used)))
	for i := range out {
		u := used.At(i)
		out[i] = Sum(Decay(was.At(i), dt, halfLife), u-Decay(u, dt, halfLife))
	}
	return out
}
