package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// Text writes a reason for people: the code, then numbers and names. The first
// sentence is about the code; what follows are further facts.
func (s *State) Text(r Reason) string {
	var b strings.Builder
	b.WriteString(string(r.Code))
	b.WriteString(": ")
	b.WriteString(s.headline(r))
	if r.Places != nil {
		s.writePlaces(&b, r.Code, r.Places)
	}
	return b.String()
}

func (s *State) headline(r Reason) string {
	switch r.Code {
	case Held:
		if r.Detail != "" {
			return "waits for " + r.Detail
		}
		return "its owner holds it"
	case QueueClosed:
		return fmt.Sprintf("queue %s admits nothing while it is closed", r.Queue)
	case QueueMissing:
		if r.Detail != "" {
			return r.Detail
		}
		if strings.Contains(r.Queue, " ") { // a kind and a name
			return r.Queue + " does not exist"
		}
		return fmt.Sprintf("queue %s does not exist", r.Queue)
	case Invalid:
		return r.Detail
	case Quota, NeverFits:
		if r.Bound != nil {
			return s.bound(r.Bound)
		}
	case Preempting:
		return fmt.Sprintf("%s %s for it", list(r.Names), plural(len(r.Names), "stops", "stop"))
	case Behind:
		text := "an earlier claim is first"
		if len(r.Names) > 0 {
			text = list(r.Names) + " is first"
		}
		if !r.Until.IsZero() {
			text += ", with room kept from " + r.Until.UTC().Format(time.RFC3339)
		}
		return text
	case Labels, Layout, Hardware, Fragmented, Capacity: // about places, below
	case Backoff:
		if r.Detail != "" {
			return "waits for " + r.Detail
		}
		return "next try at " + r.Until.UTC().Format(time.RFC3339)
	}
	return s.found(r)
}

// found says how near the gang came to a place.
func (s *State) found(r Reason) string {
	p := r.Places
	if p == nil {
		return ""
	}
	amount := s.amount(p.Resource, p.Asked)
	short := ""
	for _, set := range p.Sets {
		if set.Found < set.Want {
			name := ""
			if len(p.Sets) > 1 {
				name = " of " + set.Name
			}
			short = fmt.Sprintf("%d of %d pods%s find a place", set.Found, set.Want, name)
			break
		}
	}
	if short == "" {
		short = "each pod set alone finds a place, all together do not"
	}
	level := ""
	if p.Level != "" {
		level = " within one " + p.Level
	}
	switch r.Code {
	case NeverFits:
		return fmt.Sprintf("asks %s; not even the empty cluster holds it%s: %s", amount, level, short)
	case Labels:
		return fmt.Sprintf("asks %s; of the empty cluster only nodes that pass its selectors count%s: %s", amount, level, short)
	case Layout:
		return fmt.Sprintf("asks %s; the empty cluster would hold it only with cards cut or shared otherwise%s: %s", amount, level, short)
	case Hardware:
		return fmt.Sprintf("asks %s; with what is out of use now even the empty cluster is too small%s: %s", amount, level, short)
	case Fragmented:
		return fmt.Sprintf("asks %s, %s free in all, but not where its pods fit%s: %s", amount, s.amount(p.Resource, p.Free), level, short)
	default:
		return fmt.Sprintf("asks %s, %s free on nodes open to it%s: %s", amount, s.amount(p.Resource, p.Free), level, short)
	}
}

func (s *State) bound(b *Bound) string {
	asked, limit := s.amount(b.Resource, b.Asked), s.number(b.Resource, b.Limit)
	used := s.number(b.Resource, b.Used)
	switch {
	case b.User != "":
		return fmt.Sprintf("asks %s; %s uses %s of at most %s that one user may have of queue %s", asked, b.User, used, limit, b.Queue)
	case b.Pinned:
		return fmt.Sprintf("asks %s and may not be taken back; queue %s owns %s", asked, b.Queue, limit)
	case b.Borrow && b.Queue == "":
		return fmt.Sprintf("asks %s beyond what its queue owns; %s of the cluster's %s are taken", asked, used, limit)
	case b.Borrow:
		return fmt.Sprintf("asks %s beyond what its queue owns; %s of %s in %s are taken", asked, used, limit, b.Queue)
	case b.Used == 0:
		return fmt.Sprintf("asks %s; queue %s may use at most %s", asked, b.Queue, limit)
	default:
		return fmt.Sprintf("asks %s; queue %s uses %s of at most %s", asked, b.Queue, used, limit)
	}
}

// exclusions bounds how many groups of nodes a text names.
const exclusions = 5

func (s *State) writePlaces(b *strings.Builder, code Code, p *Places) {
	excluded := Telling(code, p.Excluded)
	for i, e := range excluded {
		if i == exclusions {
			fmt.Fprintf(b, "; %d more reasons on other nodes", len(excluded)-i)
			break
		}
		fmt.Fprintf(b, "; %s %s", list(e.Nodes), s.exclusion(p, e))
	}
	if len(p.Recut) > 0 {
		fmt.Fprintf(b, "; cut or shared otherwise, the cards of %s would hold it", list(p.Recut))
	}
	if p.Cut {
		b.WriteString("; the search ended at its bound")
	}
}

// Telling are the groups of excluded nodes as people should read them: where the code
// says what is wrong that comes first, else where most is free; and nodes that lack
// the same label are one group, whatever they have in its place.
func Telling(code Code, excluded []gang.Exclusion) []gang.Exclusion {
	var out []gang.Exclusion
	at := map[string]int{}
	others := map[string][]string{} // what nodes have in place of what is wanted
	for _, e := range excluded {
		o := e.Objection
		if o == nil || o.Taint || o.Has == "" {
			out = append(out, e)
			continue
		}
		others[o.Wants] = append(others[o.Wants], o.Has)
		i, seen := at[o.Wants]
		if !seen {
			at[o.Wants] = len(out)
			out = append(out, e)
			continue
		}
		same := &out[i]
		same.Nodes = slices.Concat(same.Nodes, e.Nodes)
		same.Free, same.Most = quota.Sum(same.Free, e.Free), max(same.Most, e.Most)
		same.Objection = &gang.Objection{Wants: o.Wants, Has: list(others[o.Wants])}
	}
	slices.SortStableFunc(out, func(a, b gang.Exclusion) int { return beside(code, &a) - beside(code, &b) })
	return out
}

// beside is 0 if the exclusion is what the code is about, else 1.
func beside(code Code, e *gang.Exclusion) int {
	if code == Labels && e.Objection == nil || code == Layout && e.Cards == "" || code == Hardware && e.Outage == nil {
		return 1
	}
	return 0
}

func (s *State) exclusion(p *Places, e gang.Exclusion) string {
	free := s.amount(p.Resource, e.Free) + " free"
	switch {
	case e.Objection != nil && e.Objection.Taint:
		return fmt.Sprintf("(%s): %s", free, e.Objection)
	case e.Objection != nil:
		return fmt.Sprintf("(%s): %s", free, e.Objection)
	case e.Outage != nil:
		text := fmt.Sprintf("(%s): %s", free, e.Outage.What)
		if e.Outage.Detail != "" {
			text += " (" + e.Outage.Detail + ")"
		}
		return text
	case e.Cards != "":
		return fmt.Sprintf("(%s): %s", free, e.Cards)
	default:
		if e.Most >= p.Pod {
			return fmt.Sprintf("(%s): too little of something else for one pod", free)
		}
		most := ""
		if len(e.Nodes) > 1 && e.Most > 0 {
			most = fmt.Sprintf(", at most %s on one", s.number(p.Resource, e.Most))
		}
		return fmt.Sprintf("(%s%s): a pod asks %s", free, most, s.number(p.Resource, p.Pod))
	}
}

// amount writes a number of a resource with its name.
func (s *State) amount(resource string, v int64) string {
	if v >= quota.MostOfOne {
		return "more " + named(resource) + " than anything holds"
	}
	return s.number(resource, v) + " " + named(resource)
}

// named is a dimension for people. One that counts a resource in one pool of nodes
// alone is called POOL:RESOURCE; without a pool it counts what no pool does.
func named(dimension string) string {
	pool, resource, ok := strings.Cut(dimension, ":")
	switch {
	case !ok:
		return dimension
	case pool == "":
		return resource
	default:
		return resource + " of flavor " + pool
	}
}

func (s *State) number(resource string, v int64) string { return Quantity(resource, v) }

// Quantity writes an amount of a resource as Kubernetes does: cpu in cores or
// millicores, memory in the largest binary unit that divides it, others as they are.
func Quantity(resource string, v int64) string {
	if _, bare, ok := strings.Cut(resource, ":"); ok {
		resource = bare
	}
	switch {
	case v >= quota.MostOfOne:
		return "no end of"
	case thousandths(resource) && v%1000 != 0:
		return strconv.FormatInt(v, 10) + "m"
	case thousandths(resource):
		return strconv.FormatInt(v/1000, 10)
	case resource == "memory" || strings.HasPrefix(resource, "hugepages-") || resource == "ephemeral-storage":
		units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
		i := 0
		for v != 0 && v%1024 == 0 && i+1 < len(units) {
			v /= 1024
			i++
		}
		return strconv.FormatInt(v, 10) + units[i]
	default:
		return strconv.FormatInt(v, 10)
	}
}

// thousandths says whether the resource is counted in thousandths: of cores, and of
// cards where a queue counts parts of them.
func thousandths(resource string) bool { return resource == "cpu" || resource == quota.Cards }

// list writes the first names and how many are left out.
func list(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
