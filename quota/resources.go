package quota

import (
	"math"
	"math/bits"
	"slices"
)

// Most is the amount at which sums saturate: more than anything can hold.
const Most = math.MaxInt64

// MostOfOne bounds what one pod may be counted with, so that sums over all pods of a
// cluster stay below Most and can be taken apart again. No node offers as much: it
// is 32 Ti of memory, or 35 billion cores.
const MostOfOne = 1 << 45

// The dimensions that every Space has, in this order.
const (
	CPU    = iota // millicores
	Memory        // bytes
	Pods          // pieces
)

// Cards is the resource in which a queue counts parts of GPUs, in thousandths of one:
// of a slice the larger of its compute and its memory part. No node offers it and no
// pod asks for it.
const Cards = "sluice.dev/gpu"

// Space names the dimensions of Resources vectors. All vectors that meet in one
// computation come from one Space. It only grows, so an index once given stays.
type Space struct {
	names []string
	index map[string]int
}

// NewSpace returns a Space with the dimensions cpu, memory and pods.
func NewSpace() *Space {
	s := &Space{index: map[string]int{}}
	for _, n := range []string{"cpu", "memory", "pods"} {
		s.Index(n)
	}
	return s
}

// Index returns the dimension called name, added if it is new.
func (s *Space) Index(name string) int {
	i, ok := s.index[name]
	if !ok {
		i = len(s.names)
		s.names = append(s.names, name)
		s.index[name] = i
	}
	return i
}

// Lookup returns the dimension called name and whether there is one.
func (s *Space) Lookup(name string) (int, bool) {
	i, ok := s.index[name]
	return i, ok
}

// Name returns what dimension i is called.
func (s *Space) Name(i int) string { return s.names[i] }

// Len returns the number of dimensions.
func (s *Space) Len() int { return len(s.names) }

// Vector builds a vector from amounts by name.
func (s *Space) Vector(amounts map[string]int64) Resources {
	r := Resources{}
	for name, v := range amounts {
		r.Set(s.Index(name), v)
	}
	return r
}

// Resources is a dense vector of amounts, one per dimension of a Space. A vector
// may be shorter than its Space; what is missing is 0.
type Resources []int64

// At returns the amount in dimension i.
func (r Resources) At(i int) int64 {
	if i < len(r) {
		return r[i]
	}
	return 0
}

// Set puts v into dimension i, growing the vector as needed.
func (r *Resources) Set(i int, v int64) {
	for len(*r) <= i {
		*r = append(*r, 0)
	}
	(*r)[i] = v
}

// Clone returns a copy that shares nothing with r.
func (r Resources) Clone() Resources { return slices.Clone(r) }

// Add adds o to r in place, saturating at Most.
func (r *Resources) Add(o Resources) {
	for len(*r) < len(o) {
		*r = append(*r, 0)
	}
	for i, v := range o {
		(*r)[i] = Sum((*r)[i], v)
	}
}

// Sub subtracts o from r in place. The result may be negative: callers that
// must not go below 0 check it and say with which numbers.
func (r *Resources) Sub(o Resources) {
	for len(*r) < len(o) {
		*r = append(*r, 0)
	}
	for i, v := range o {
		(*r)[i] -= v
	}
}

// Times returns n copies of r added up, saturating at Most.
func (r Resources) Times(n int) Resources {
	out := make(Resources, len(r))
	for i, v := range r {
		out[i] = Product(v, int64(n))
	}
	return out
}

// Within says whether r is at most o in every dimension that r asks for.
func (r Resources) Within(o Resources) bool {
	for i, v := range r {
		if v > 0 && v > o.At(i) {
			return false
		}
	}
	return true
}

// Bounded returns r with no amount above MostOfOne and none below 0: r itself if that
// is so already.
func (r Resources) Bounded() Resources {
	for _, v := range r {
		if v < 0 || v > MostOfOne {
			c := r.Clone()
			for i := range c {
				c[i] = min(max(c[i], 0), MostOfOne)
			}
			return c
		}
	}
	return r
}

// IsZero says whether every amount is 0.
func (r Resources) IsZero() bool {
	for _, v := range r {
		if v != 0 {
			return false
		}
	}
	return true
}

// Equal says whether r and o hold the same amounts.
func (r Resources) Equal(o Resources) bool {
	for i := range max(len(r), len(o)) {
		if r.At(i) != o.At(i) {
			return false
		}
	}
	return true
}

// Copies returns how many times o fits into r, at most limit.
func (r Resources) Copies(o Resources, limit int) int {
	n := int64(limit)
	for i, v := range o {
		if v <= 0 {
			continue
		}
		have := r.At(i)
		if have < v {
			return 0
		}
		n = min(n, have/v)
	}
	return int(n)
}

// Sum adds two amounts that are not negative, saturating at Most. A negative
// addend takes away and cannot overflow.
func Sum(a, b int64) int64 {
	if b > 0 && a > Most-b {
		return Most
	}
	return a + b
}

// Product multiplies two amounts that are not negative, saturating at Most.
func Product(a, b int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > Most {
		return Most
	}
	return int64(lo)
}
