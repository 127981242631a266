package v1alpha1

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// cut is a card in MIG mode with the slices: "1g.5gb" has a device that fills it,
// "1g.5gb!" only a part of one, "1g.5gb-" none.
func cut(slices ...string) Card {
	c := Card{MIG: &MIGMode{Current: true, Pending: true}}
	for i, s := range slices {
		in := Instance{ID: int32(i), Profile: strings.TrimRight(s, "!-"), Size: 1, Devices: []MIGDevice{{UUID: "MIG-x"}}}
		switch s[len(s)-1] {
		case '!':
			in.Devices[0].Partial = true
		case '-':
			in.Devices = nil
		}
		c.Instances = append(c.Instances, in)
	}
	return c
}

func TestOffers(t *testing.T) {
	shared := func(resource string, n int32, renamed bool) []Share {
		return []Share{{Resource: resource, Strategy: TimeSlicing, Replicas: n, Renamed: renamed}}
	}
	for _, c := range []struct {
		name   string
		mig    MIGStrategy
		shares []Share
		cards  []Card
		want   string // by card
		refuse string
	}{
		{name: "a whole card", cards: []Card{{}}, want: "gpu 1"},
		{name: "nobody says the strategy: the plugin's default", cards: []Card{cut("1g.5gb")}, want: "gpu 1"},
		{name: "none offers a card that is cut as a whole one", mig: MIGNone, cards: []Card{cut("1g.5gb", "2g.10gb")}, want: "gpu 1"},
		{
			name: "mixed", mig: MIGMixed, cards: []Card{cut("2g.10gb", "1g.5gb", "1g.5gb+me", "2g.10gb"), {}},
			want: "mig-1g.5gb 1 mig-1g.5gb.me 1 mig-2g.10gb 2; gpu 1",
		},
		{name: "what is partial or empty is not offered", mig: MIGMixed, cards: []Card{cut("3g.20gb!", "2g.10gb-"), cut()}, want: "; "},
		{name: "single", mig: MIGSingle, cards: []Card{cut("1g.5gb", "1g.5gb"), cut("1g.5gb")}, want: "gpu 2; gpu 1"},
		{name: "single, two profiles", mig: MIGSingle, cards: []Card{cut("1g.5gb"), cut("2g.10gb")}, want: "gpu 1; gpu 1", refuse: "slices of 1g.5gb, 2g.10gb"},
		{name: "single, whole and cut", mig: MIGSingle, cards: []Card{cut("1g.5gb"), {}}, want: "gpu 1; gpu 1", refuse: "1 of 2 cards are cut"},
		{name: "single, whole but lost", mig: MIGSingle, cards: []Card{cut("1g.5gb"), {Out: Lost}}, want: "gpu 1; gpu 1"},
		{name: "single, empty", mig: MIGSingle, cards: []Card{cut("1g.5gb"), {Index: 1, MIG: &MIGMode{Current: true}}}, want: "gpu 1; ", refuse: "card 1 is in MIG mode without slices"},
		{name: "single, all whole", mig: MIGSingle, cards: []Card{{}, {}}, want: "gpu 1; gpu 1"},
		{name: "time slices", shares: shared("nvidia.com/gpu", 10, false), cards: []Card{{}}, want: "gpu 10"},
		{name: "renamed", shares: shared("nvidia.com/gpu", 4, true), cards: []Card{{}}, want: "gpu.shared 4"},
		{name: "shared slices beside whole cards", mig: MIGMixed, shares: shared("nvidia.com/mig-1g.5gb", 3, true), cards: []Card{cut("1g.5gb", "1g.5gb"), {}}, want: "mig-1g.5gb.shared 6; gpu 1"},
		{name: "single, shared", mig: MIGSingle, shares: shared("nvidia.com/gpu", 2, false), cards: []Card{cut("1g.5gb", "1g.5gb")}, want: "gpu 4"},
	} {
		r := Report{Cards: c.cards, Sharing: Sharing{MIGStrategy: c.mig, Shares: c.shares}}
		var cards []string
		for i := range r.Cards {
			var offers []string
			for _, o := range r.Offers(&r.Cards[i]) {
				offers = append(offers, fmt.Sprintf("%s %d", strings.TrimPrefix(o.Resource, "nvidia.com/"), o.Count))
			}
			cards = append(cards, strings.Join(offers, " "))
		}
		if got := strings.Join(cards, "; "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if got := r.Refusal(); (got == "") != (c.refuse == "") || !strings.Contains(got, c.refuse) {
			t.Errorf("%s: refused because %q, want %q", c.name, got, c.refuse)
		}
	}
}

// The names under which slices would be offered, cut or not.
func TestSliceResource(t *testing.T) {
	for _, c := range []struct {
		profile string
		mig     MIGStrategy
		want    string
	}{
		{"1g.5gb", MIGMixed, "nvidia.com/mig-1g.5gb"},
		{"1g.5gb+me", MIGMixed, "nvidia.com/mig-1g.5gb.me"},
		{"1g.24gb+me.all", MIGMixed, "nvidia.com/mig-1g.24gb.me.all"},
		{"1g.24gb-me", MIGMixed, "nvidia.com/mig-1g.24gb-me"},
		{"2g.10gb", MIGMixed, "nvidia.com/mig-2g.10gb.shared"},
		{"1g.5gb", MIGSingle, "nvidia.com/gpu"},
		{"1g.5gb", MIGNone, ""},
		{"1g.5gb", "", ""},
	} {
		r := Report{Sharing: Sharing{MIGStrategy: c.mig, Shares: []Share{{Resource: "nvidia.com/mig-2g.10gb", Replicas: 2, Renamed: true}}}}
		if got := r.SliceResource(c.profile); got != c.want {
			t.Errorf("%s under %q: got %q, want %q", c.profile, c.mig, got, c.want)
		}
	}
}

func TestCardLayout(t *testing.T) {
	c := cut("1g.5gb", "3g.20gb", "1g.5gb", "2g.10gb")
	for i, size := range []int32{1, 4, 1, 2} {
		c.Instances[i].Size = size
	}
	if got, want := c.Layout(), "3g.20gb, 2g.10gb, 1g.5gb x2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (&Card{}).Layout(); got != "" {
		t.Errorf("a whole card is cut as %q", got)
	}
}

func TestSilent(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lease := func(ago time.Duration, seconds int32) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-ago))), LeaseDurationSeconds: &seconds}}
	}
	for _, c := range []struct {
		name  string
		lease *coordinationv1.Lease
		want  bool
	}{
		{"none", nil, true},
		{"empty", &coordinationv1.Lease{}, true},
		{"fresh", lease(0, 60), false},
		{"at its end", lease(time.Minute, 60), false},
		{"over", lease(time.Minute+time.Second, 60), true},
		{"longer, as it says itself", lease(5*time.Minute, 600), false},
		{"from a clock that is ahead", lease(-time.Hour, 60), false},
	} {
		if got := Silent(c.lease, now); got != c.want {
			t.Errorf("%s: silent is %t", c.name, got)
		}
	}
}

func TestGravity(t *testing.T) {
	if Gravity(ProblemLost) != 0 || Gravity(ProblemFailing) >= Gravity(ProblemUnread) || Gravity("of next year") <= Gravity(ProblemLeftOut) {
		t.Error("problems are out of order")
	}
}
