package quota

import (
	"strings"
	"testing"
)

func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if r, ok := recover().(string); !ok || !strings.Contains(r, want) {
			t.Errorf("panics with %q, want %q", r, want)
		}
	}()
	f()
}

func single(t *testing.T) (*Ledger, int) {
	t.Helper()
	tree, problems := Build([]Queue{{Name: "a", Weight: 1, Nominal: map[int]int64{0: 8}}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	tree.Settle(Resources{8}, func(int) Resources { return nil })
	id, _ := tree.ID("a")
	return NewLedger(tree, nil), id
}

// What was not charged cannot be released: that would be a charge lost elsewhere.
func TestReleaseTooMuch(t *testing.T) {
	l, a := single(t)
	l.Charge(a, Resources{3})
	mustPanic(t, "quota: a released 1 more of dimension 0 than it was charged", func() { l.Release(a, Resources{4}) })
}

func TestChargeOfNobody(t *testing.T) {
	l, _ := single(t)
	mustPanic(t, "quota: charge [1] for queue b", func() { NewLedger(l.Tree(), map[string]Resources{"b": {1}}) })
}

// A request beyond int64 fits nowhere and is not a negative number.
func TestHugeNeverFits(t *testing.T) {
	l, a := single(t)
	l.Charge(a, Resources{1})
	for _, r := range []Resources{{Most}, {Most - 1}, Resources{Most / 2}.Times(3)} {
		if lack, ok := l.Fits(a, r); ok || lack.Asked != r[0] {
			t.Errorf("%v fits: %t, %+v", r, ok, lack)
		}
		if l.Owns(a, r) {
			t.Errorf("%v is owned", r)
		}
	}
}

// Check sees a count that went astray: it is what tells the controller.
func TestCheckSees(t *testing.T) {
	l, a := single(t)
	l.Charge(a, Resources{3})
	if bad := l.Check(); len(bad) > 0 {
		t.Fatalf("sound ledger: %q", bad)
	}
	l.usage[a][0]++
	l.taken[Root][0]--
	if bad := l.Check(); len(bad) != 2 {
		t.Errorf("two counts are astray, Check says %q", bad)
	}
}

// A clone shares nothing.
func TestClone(t *testing.T) {
	l, a := single(t)
	l.Charge(a, Resources{3})
	c := l.Clone()
	c.Charge(a, Resources{2})
	if l.Usage(a).At(0) != 3 || c.Usage(a).At(0) != 5 || l.Usage(Root).At(0) != 3 {
		t.Errorf("usage is %v and %v", l.Usage(a), c.Usage(a))
	}
}

// Multiplying all weights by a constant changes no comparison; shares kept as whole
// thousandths would round into ties.
func TestSharesDoNotRound(t *testing.T) {
	a, b := Share{Above: 100_001, Lent: 1 << 40, Weight: 3}, Share{Above: 100_002, Lent: 1 << 40, Weight: 3}
	for _, k := range []int64{1, 7, 1 << 30} {
		a.Weight, b.Weight = 3*k, 3*k
		if a.Compare(b) != -1 || b.Compare(a) != 1 {
			t.Errorf("weights × %d: %d", k, a.Compare(b))
		}
	}
}

func BenchmarkDivide(b *testing.B) {
	parts := make([]Part, 1000)
	for i := range parts {
		parts[i] = Part{Weight: int64(i%7 + 1), Want: 1 << 40}
	}
	for b.Loop() {
		Divide(80_000, parts)
	}
}
