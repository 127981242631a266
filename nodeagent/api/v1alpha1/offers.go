package v1alpha1

import (
	"fmt"
	"slices"
	"strings"
)

// WholeCard is the resource of whole cards, and of MIG devices under strategy single.
const WholeCard = "nvidia.com/gpu"

// Offer is how many devices are offered under a name.
type Offer struct {
	Resource string
	Count    int64
}

// strategy is the MIG strategy. Where nobody says, it is the plugin's default.
func (r *Report) strategy() MIGStrategy {
	if r.Sharing.MIGStrategy == "" {
		return MIGNone
	}
	return r.Sharing.MIGStrategy
}

// Share returns how the devices of a resource are shared, by its name without
// ".shared". nil means that they are not.
func (r *Report) Share(resource string) *Share {
	for i := range r.Sharing.Shares {
		if r.Sharing.Shares[i].Resource == resource {
			return &r.Sharing.Shares[i]
		}
	}
	return nil
}

// offered is under which name, and how many times, one device of a resource is offered.
func (r *Report) offered(resource string) Offer {
	s := r.Share(resource)
	switch {
	case s == nil:
		return Offer{resource, 1}
	case s.Renamed:
		return Offer{resource + ".shared", int64(s.Replicas)}
	default:
		return Offer{resource, int64(s.Replicas)}
	}
}

// WholeResource is under which name whole cards, or replicas of them, are offered.
func (r *Report) WholeResource() string { return r.offered(WholeCard).Resource }

// SliceResource is under which name slices of a profile are offered, or would be if
// there were any. "" under strategy none, which offers no slices.
func (r *Report) SliceResource(profile string) string {
	switch r.strategy() {
	case MIGMixed:
		return r.offered(SliceResource(profile)).Resource
	case MIGSingle:
		return r.WholeResource()
	default:
		return ""
	}
}

// Replicas is by how many pods one card that is not cut may be used, at least 1.
func (r *Report) Replicas() int64 { return r.offered(WholeCard).Count }

// Offers is what the card offers as it is cut and shared, were it in order, by
// resource. It is what the device plugin makes of these cards; Refusal is not
// regarded.
func (r *Report) Offers(c *Card) []Offer {
	if !c.InMIGMode() || r.strategy() == MIGNone {
		return []Offer{r.offered(WholeCard)}
	}
	var all []Offer
	for i := range c.Instances {
		if !c.Instances[i].usable() || r.strategy() == MIGMixed && c.Instances[i].Profile == "" {
			continue
		}
		one := r.offered(WholeCard)
		if r.strategy() == MIGMixed {
			one = r.offered(SliceResource(c.Instances[i].Profile))
		}
		at := slices.IndexFunc(all, func(o Offer) bool { return o.Resource == one.Resource })
		if at < 0 {
			all = append(all, one)
		} else {
			all[at].Count += one.Count
		}
	}
	slices.SortFunc(all, func(a, b Offer) int { return strings.Compare(a.Resource, b.Resource) })
	return all
}

// usable says that the instance has a device that fills it: the plugin offers no others.
func (i *Instance) usable() bool {
	return slices.ContainsFunc(i.Devices, func(d MIGDevice) bool { return !d.Partial })
}

// Refusal is why the device plugin offers nothing at all on a node with these cards,
// or "". Under strategy single all cards have to be cut, and alike, or none.
func (r *Report) Refusal() string {
	if r.strategy() != MIGSingle {
		return ""
	}
	cut, whole := 0, 0
	var profiles []string
	for i := range r.Cards {
		c := &r.Cards[i]
		switch {
		case c.Out == Lost:
			continue
		case !c.InMIGMode():
			whole++
			continue
		}
		cut++
		found := false
		for k := range c.Instances {
			if c.Instances[k].usable() {
				found = true
				profiles = append(profiles, c.Instances[k].Profile)
			}
		}
		if !found {
			return fmt.Sprintf("the MIG strategy is single and card %d is in MIG mode without slices", c.Index)
		}
	}
	slices.Sort(profiles)
	profiles = slices.Compact(profiles)
	switch {
	case cut > 0 && whole > 0:
		return fmt.Sprintf("the MIG strategy is single and %d of %d cards are cut", cut, cut+whole)
	case len(profiles) > 1:
		return fmt.Sprintf("the MIG strategy is single and there are slices of %s", strings.Join(profiles, ", "))
	default:
		return ""
	}
}
