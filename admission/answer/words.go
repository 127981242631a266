package answer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/gang"
	"sluice.dev/sluice/quota"
)

// Short is a resource as people say it: gpu, 2g.20gb, memory.
func Short(resource string) string {
	if i := strings.LastIndex(resource, ":"); i >= 0 { // of a flavor
		return resource[:i+1] + Short(resource[i+1:])
	}
	if i := strings.LastIndex(resource, "/"); i >= 0 {
		resource = resource[i+1:]
	}
	return strings.TrimPrefix(resource, "mig-")
}

// amount writes a number of a resource with its short name.
func amount(resource string, v int64) string {
	return admission.Quantity(resource, v) + " " + Short(resource)
}

// Age writes how long something took as kubectl does: 12s, 5m, 3h12m, 2d4h.
func Age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		if m := int(d.Minutes()) % 60; m > 0 {
			return fmt.Sprintf("%dh%dm", int(d.Hours()), m)
		}
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		if h := int(d.Hours()) % 24; h > 0 {
			return fmt.Sprintf("%dd%dh", int(d.Hours())/24, h)
		}
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}

// clock writes a time near now: the hour alone, or with the day.
func clock(t, now time.Time) string {
	t = t.UTC()
	switch {
	case t.Sub(now).Abs() < 20*time.Hour && t.Sub(now).Abs() < 10*time.Minute:
		return t.Format("15:04:05")
	case t.Sub(now).Abs() < 20*time.Hour:
		return t.Format("15:04")
	default:
		return t.Format("Jan 2 15:04")
	}
}

// device is the dimension that people mean when they speak of the pod's size: the
// first that counts devices, or else cpu.
func device(r quota.Resources) int {
	for i := quota.Pods + 1; i < len(r); i++ {
		if r[i] > 0 {
			return i
		}
	}
	return quota.CPU
}

// isDevice says of a dimension above those of every pod that it is not cpu, memory or
// pods again, as a flavor counts them.
func isDevice(name string) bool {
	i := strings.LastIndex(name, ":")
	return i < 0 || strings.Contains(name[i:], "/")
}

// needs is what a gang asks for, as people say it: 4x2g.20gb, 8x8 gpu.
func (w *World) needs(s *gang.Spec) string {
	var parts []string
	for _, ps := range s.PodSets {
		dim := device(ps.Request)
		size := fmt.Sprint(ps.Count)
		if ps.Min < ps.Count {
			size = fmt.Sprintf("%d-%d", ps.Min, ps.Count)
		}
		name, n := w.s.Space.Name(dim), ps.Request.At(dim)
		if strings.Contains(name, "/mig-") && n == 1 {
			parts = append(parts, size+"x"+Short(name))
		} else {
			parts = append(parts, size+"x"+amount(name, n))
		}
	}
	return strings.Join(parts, " + ")
}

// fold names nodes as lists of people do: n[1-3,7], others as they are.
func fold(names []string, most int) string {
	type run struct {
		prefix string
		from   int
		to     int
		width  int
	}
	var out []string
	var open *run
	var prefix string
	var ranges []string
	flush := func() {
		if open != nil {
			if open.from == open.to {
				ranges = append(ranges, fmt.Sprintf("%0*d", open.width, open.from))
			} else {
				ranges = append(ranges, fmt.Sprintf("%0*d-%0*d", open.width, open.from, open.width, open.to))
			}
			open = nil
		}
	}
	end := func() {
		flush()
		switch {
		case len(ranges) == 1 && !strings.Contains(ranges[0], "-"):
			out = append(out, prefix+ranges[0])
		case len(ranges) > 0:
			out = append(out, prefix+"["+strings.Join(ranges, ",")+"]")
		}
		ranges = nil
	}
	for _, name := range names {
		at := len(name)
		for at > 0 && name[at-1] >= '0' && name[at-1] <= '9' {
			at--
		}
		digits := name[at:]
		if digits == "" || len(digits) > 9 {
			end()
			out = append(out, name)
			prefix = ""
			continue
		}
		n := 0
		for _, c := range digits {
			n = n*10 + int(c-'0')
		}
		width := 0
		if len(digits) > 1 && digits[0] == '0' {
			width = len(digits)
		}
		if len(ranges) == 0 && open == nil || name[:at] != prefix {
			end()
			prefix = name[:at]
		}
		if open != nil && (n != open.to+1 || width != open.width) {
			flush()
		}
		if open == nil {
			open = &run{prefix, n, n, width}
		}
		open.to = n
	}
	end()
	if len(out) > most {
		rest := len(out) - most
		out = append(slices.Clone(out[:most]), fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(out, " ")
}

// plural picks a word by number.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
