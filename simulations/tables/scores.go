package tables

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"sluice.dev/sluice/gang"
)

// What the study measures capacity by.
const (
	largestCPU = 128_000      // thousandths of a core
	largestGPU = 8 * wholeGPU // thousandths of a GPU
	scoreMost  = 100
)

// choose sets the policy.
func (hs *hosts) choose(policy string) error {
	hs.pick = first
	switch policy {
	case "Random":
		hs.score = func(*hosts, *host, kind) int64 { return 0 }
		hs.pick = func(rated []gang.Rated) int { return hs.rng.Intn(len(rated)) }
	case "DotProd":
		hs.score = dotProduct
	case "Clustering":
		hs.score = clustering
	case "Packing":
		hs.score = packing
	case "BestFit":
		hs.score, hs.pick = bestFit, spreadOut
	case "FGD":
		hs.score = func(hs *hosts, h *host, k kind) int64 {
			score, _ := hs.descent(h, k)
			return score
		}
		hs.card = func(hs *hosts, h *host, k kind) int {
			_, card := hs.descent(h, k)
			return card
		}
	case Plain:
		hs.score = func(*hosts, *host, kind) int64 { return 0 }
		hs.pick = func([]gang.Rated) int { return -1 }
	case Whole:
		hs.score = lessened
		hs.card = func(hs *hosts, h *host, k kind) int {
			_, card := hs.bestDescent(h, k)
			return card
		}
	default:
		return fmt.Errorf("no policy %q", policy)
	}
	return nil
}

func (h *host) sum() int64 {
	sum := int64(0)
	for i := range h.gpus {
		sum += h.left[i]
	}
	return sum
}

func dotProduct(_ *hosts, h *host, k kind) int64 {
	dot := float64(h.cpu)/largestCPU*(float64(k.cpu)/largestCPU) + float64(h.sum())/largestGPU*(float64(k.num*k.milli)/largestGPU)
	score := int64(scoreMost * (1 - dot/2))
	if score < -1 {
		return 0
	}
	return score
}

func bestFit(_ *hosts, h *host, k kind) int64 {
	left := .5*(float64(h.cpu-k.cpu)/largestCPU) + .5*(float64(h.sum()-k.num*k.milli)/largestGPU)
	return int64((1 - left) * scoreMost)
}

// spreadOut takes the first of the highest scores once they are stretched to whole
// numbers from 0 to 100.
func spreadOut(rated []gang.Rated) int {
	lo, hi := rated[0].Score, rated[0].Score
	for _, r := range rated {
		lo, hi = min(lo, r.Score), max(hi, r.Score)
	}
	if lo == hi {
		return 0
	}
	for i := range rated {
		rated[i].Score = (rated[i].Score - lo) * scoreMost / (hi - lo)
	}
	return first(rated)
}

// class is as what a node remembers such pods.
func (k kind) class() string {
	switch {
	case k.num == 0:
		return ""
	case k.shares():
		return "share"
	default:
		return strconv.FormatInt(k.num, 10)
	}
}

func clustering(_ *hosts, h *host, k kind) int64 {
	c := k.class()
	if c == "" {
		return 0
	}
	base := 25 * (largestGPU - h.sum()) / largestGPU
	switch {
	case h.accepted[c] && len(h.accepted) == 1:
		return base + 75
	case h.accepted[c]:
		return base + 50
	case len(h.accepted) == 0:
		return base + 25
	default:
		return base
	}
}

func packing(_ *hosts, h *host, k kind) int64 {
	if k.num == 0 {
		return 0
	}
	untouched := int64(0)
	for i := range h.gpus {
		if h.left[i] == wholeGPU {
			untouched++
		}
	}
	if untouched == int64(h.gpus) {
		return max(33-untouched, untouched)
	}
	opened, left := int64(0), int64(0)
	for _, i := range h.tightest(k) {
		if h.left[i] == wholeGPU {
			opened++
		}
		left += h.left[i] * scoreMost / wholeGPU
	}
	if opened > 0 {
		return max(50-opened, 33)
	}
	return max(scoreMost-left/10, 50)
}

// tightest are the cards with the least left that hold one each of the pod's.
func (h *host) tightest(k kind) []int {
	var order [gpusMost]int
	for i := range h.gpus {
		order[i] = i
	}
	slices.SortStableFunc(order[:h.gpus], func(i, j int) int { return cmp.Compare(h.left[i], h.left[j]) })
	out := make([]int, 0, k.num)
	for _, i := range order[:h.gpus] {
		if int64(len(out)) < k.num && h.left[i] >= k.milli {
			out = append(out, i)
		}
	}
	return out
}

// descent is how much the pod would lessen the node's fragments, as FGD scores it,
// and for a share on which card.
func (hs *hosts) descent(h *host, k kind) (score int64, card int) {
	card = -1
	hs.trials(h, k, func(less float64, on int) {
		if s := sigmoid(less); card < 0 && on >= 0 || s > score {
			score, card = s, on
		}
	})
	return score, card
}

// bestDescent is descent without cutting it to whole numbers.
func (hs *hosts) bestDescent(h *host, k kind) (most float64, card int) {
	most, card = math.Inf(-1), -1
	hs.trials(h, k, func(less float64, on int) {
		if less > most {
			most, card = less, on
		}
	})
	return most, card
}

// trials calls f with by how much the node's fragments get less, for every card that
// a share could go to, else once with card -1.
func (hs *hosts) trials(h *host, k kind, f func(less float64, card int)) {
	before := hs.frag.of(h)
	after := *h
	after.cpu -= k.cpu
	if !k.shares() {
		if k.num > 0 {
			for _, i := range h.tightest(k) {
				after.left[i] -= k.milli
			}
		}
		f(before-hs.frag.of(&after), -1)
		return
	}
	for i := range h.gpus {
		if h.left[i] < k.milli || slices.Contains(h.left[:i], h.left[i]) {
			continue // one that looks the same was tried
		}
		after.left[i] -= k.milli
		f(before-hs.frag.of(&after), i)
		after.left[i] += k.milli
	}
}

func sigmoid(less float64) int64 {
	return int64(scoreMost * (1 / (1 + math.Exp(-less/wholeGPU))))
}

// take gives the pod its cards.
func (hs *hosts) take(h *host, k kind) {
	if c := k.class(); c != "" {
		h.accepted[c] = true
	}
	defer func() { h.cpu -= k.cpu }()
	switch {
	case k.num == 0:
	case k.shares():
		card := h.tightest(k)[0]
		if hs.card != nil {
			card = hs.card(hs, h, k)
		}
		h.left[card] -= k.milli
	case k.milli == wholeGPU:
		n := k.num
		for i := 0; i < h.gpus && n > 0; i++ {
			if h.left[i] == wholeGPU {
				h.left[i] = 0
				n--
			}
		}
	default:
		n := k.num
		for i := 0; i < h.gpus; i++ {
			for ; n > 0 && h.left[i] >= k.milli; n-- {
				h.left[i] -= k.milli
			}
		}
	}
}

// fullness is what a node that would be empty counts against one that would be full,
// in thousandths of a GPU of fragments.
const fullness = 100

// lessened is FGD's measure without cutting it to a hundred steps, and of nodes that
// are about equal to it the fuller one.
func lessened(hs *hosts, h *host, k kind) int64 {
	less, _ := hs.bestDescent(h, k)
	left := .5*(float64(h.cpu-k.cpu)/largestCPU) + .5*(float64(h.sum()-k.num*k.milli)/largestGPU)
	return int64((less - fullness*left) * fine)
}

// fine is into how many steps a thousandth is cut.
const fine = 1000
