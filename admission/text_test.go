package admission

import (
	"testing"

	"sluice.dev/sluice/quota"
)

// A quota may count a resource in one pool of nodes alone. People read the pool and
// the resource, in the resource's own unit.
func TestAmountsForPeople(t *testing.T) {
	s := NewState(DefaultConfig())
	for _, c := range []struct {
		dimension string
		v         int64
		want      string
	}{
		{"nvidia.com/gpu", 8, "8 nvidia.com/gpu"},
		{"a100:nvidia.com/gpu", 8, "8 nvidia.com/gpu of flavor a100"},
		{"a100:cpu", 1500, "1500m cpu of flavor a100"},
		{":cpu", 2000, "2 cpu"},
		{"spot:memory", 3 << 30, "3Gi memory of flavor spot"},
		{"a100:nvidia.com/gpu", quota.MostOfOne, "more nvidia.com/gpu of flavor a100 than anything holds"},
	} {
		if got := s.amount(c.dimension, c.v); got != c.want {
			t.Errorf("%s %d is written %q, want %q", c.dimension, c.v, got, c.want)
		}
	}
}
