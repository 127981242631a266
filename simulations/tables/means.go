package tables

import "math"

// mean is the mean of the values, added up in the order in which numpy does it, so
// that the last printed digit is the same.
func mean(v []float64) float64 { return pairwise(v) / float64(len(v)) }

const (
	blockOf8  = 8
	blockMost = 128
)

func pairwise(v []float64) float64 {
	n := len(v)
	switch {
	case n < blockOf8:
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		return sum
	case n <= blockMost:
		var r [blockOf8]float64
		copy(r[:], v)
		i := blockOf8
		for ; i+blockOf8 <= n; i += blockOf8 {
			for k := range r {
				r[k] += v[i+k]
			}
		}
		sum := ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
		for ; i < n; i++ {
			sum += v[i]
		}
		return sum
	default:
		half := n / 2
		half -= half % blockOf8
		return pairwise(v[:half]) + pairwise(v[half:])
	}
}

// rounded is x with two digits after the point, halves to even.
func rounded(x float64) float64 {
	const scale = 100
	return math.RoundToEven(x*scale) / scale
}
