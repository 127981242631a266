package tables

import (
	"math"
	"slices"
	"testing"
)

// Every policy that draws nothing gives what was published, to the last digit, at
// every percent that had arrived: how much is allocated, and how much of the rest is
// fragmented.
func TestPackingIsPublished(t *testing.T) {
	d := dir(t)
	want, err := Published(d)
	if err != nil {
		t.Fatal(err)
	}
	const workload, seed = "default", 42
	pods, nodes, err := openb(d, workload)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range Placements[1:] {
		got, err := Pack(pods, nodes, workload, policy, seed, true)
		if err != nil {
			t.Fatal(err)
		}
		w := want[Run{workload, policy, seed}]
		if len(w.Allocated) == 0 || !slices.Equal(got.Allocated, w.Allocated) || !slices.Equal(got.Fragmented, w.Fragmented) || !slices.Equal(got.OfIdle, w.OfIdle) {
			t.Errorf("%s: allocated %v, want %v", policy, got.Allocated, w.Allocated)
		}
	}
}

func TestMeansAddUpLikeNumpy(t *testing.T) {
	for n, want := range map[int]float64{1: .1, 7: .7, 8: .8, 130: 13, 1000: 100} {
		v := slices.Repeat([]float64{.1}, n)
		if got := pairwise(v); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d tenths are %v", n, got)
		}
	}
	// Where the order matters: one large value swallows small ones added one by one.
	v := slices.Repeat([]float64{1}, 16)
	v[0] = 1 << 53
	if got := pairwise(v); got != 1<<53+14 {
		t.Errorf("got %v", got)
	}
	if rounded(.125) != .12 || rounded(.375) != .38 {
		t.Error("halves are not rounded to even")
	}
}
