package simulations

import "testing"

// TestBenchMIG: on streams drawn by lot no rule lets in more than every choice tried;
// ours lets in more than first fit, and stays within a twelfth of one that knows what
// is to come.
func TestBenchMIG(t *testing.T) {
	for what, bench := range map[string]func(string, uint64, int) (Acceptance, error){"as cut": BenchMIG, "cut on demand": BenchCuts} {
		var ours, first int
		for _, product := range BenchProducts {
			a, err := bench(product, 1, map[string]int{"as cut": 100, "cut on demand": 6}[what])
			if err != nil {
				t.Fatal(err)
			}
			if max(a.Ours, a.FirstFit) > a.Accepting || a.Accepting > a.Best || a.Ours*12 < a.Accepting*11 || a.Best == 0 || a.Best == a.Requests {
				t.Errorf("%s: %+v", what, a)
			}
			ours, first = ours+a.Ours, first+a.FirstFit
		}
		if ours <= first {
			t.Errorf("%s: ours lets %d in, first fit %d", what, ours, first)
		}
		if _, err := bench("NVIDIA-A10", 1, 1); err == nil {
			t.Error("a card without MIG is no error")
		}
	}
}

// TestBenchExact: of all rules that do not know what is to come, the best is no more
// than a hundredth better than ours, on every grid, and first fit is worse.
func TestBenchExact(t *testing.T) {
	for _, product := range BenchProducts {
		e, err := BenchExact(product)
		if err != nil {
			t.Fatal(err)
		}
		if e.Ours > e.Best+1e-6 || e.Ours < 0.99*e.Best || e.Ours <= e.FirstFit || e.Best > 0.95 || e.Cards == 0 {
			t.Errorf("%+v", e)
		}
	}
	if _, err := BenchExact("NVIDIA-A10"); err == nil {
		t.Error("a card without MIG is no error")
	}
}
