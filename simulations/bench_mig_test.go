package simulations

import "testing"

// TestBenchMIG: no rule lets in more than every choice tried, and ours stays within
// a twentieth of it, though that knows what is to come.
func TestBenchMIG(t *testing.T) {
	for _, product := range BenchProducts {
		a, err := BenchMIG(product, 1, 40)
		if err != nil {
			t.Fatal(err)
		}
		if a.Ours > a.Best || a.FirstFit > a.Best || a.Ours*20 < a.Best*19 || a.Best == 0 || a.Best == a.Requests {
			t.Errorf("%+v", a)
		}
	}
	if _, err := BenchMIG("NVIDIA-A10", 1, 1); err == nil {
		t.Error("a card without MIG is no error")
	}
}
