package answer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"sluice.dev/sluice/admission"
)

// Conceal is the image without the names of gangs, pods and users of namespaces that
// may not be seen: "a gang of team-b (3fa1c0)" stands for a gang. What they hold and
// ask for stays, since every answer depends on it, and so does their order.
func Conceal(im admission.Image, may func(namespace string) bool) admission.Image {
	names := map[string]string{}
	out := im
	out.Workloads = slices.Clone(im.Workloads)
	for i := range out.Workloads {
		m := &out.Workloads[i]
		if may(Namespace(m.Workload.Key)) {
			continue
		}
		sum := sha256.Sum256([]byte(m.Workload.UID))
		name := fmt.Sprintf("a gang of %s (%s)", m.Workload.Queue, hex.EncodeToString(sum[:3]))
		if m.Gone {
			name += " deleted"
		}
		names[m.Name] = name
		conceal(m, name)
	}
	if len(names) == 0 && len(im.Pods) == 0 {
		return im
	}
	rename := func(key string) string {
		if n, ok := names[key]; ok {
			return n
		}
		return key
	}
	out.Nominees = slices.Clone(im.Nominees)
	for i := range out.Nominees {
		n := &out.Nominees[i]
		n.Key = rename(n.Key)
		n.Victims = slices.Clone(n.Victims)
		for k := range n.Victims {
			n.Victims[k] = rename(n.Victims[k])
		}
	}
	out.Pods = slices.Clone(im.Pods)
	for i := range out.Pods {
		p := &out.Pods[i]
		if !may(Namespace(p.Key)) {
			p.Key = fmt.Sprintf("a pod (%d)", i)
			if p.Workload != "" {
				p.Workload = fmt.Sprintf("a gang of %s (unknown %d)", p.Queue, i)
			}
		}
	}
	return out
}

// conceal takes what tells whose it is out of one workload.
func conceal(m *admission.Remembered, name string) {
	x := *m.Workload
	x.Key = name
	if x.User != "" { // bounds by user still tell one from another
		sum := sha256.Sum256([]byte("user " + x.User))
		x.User = "a user (" + hex.EncodeToString(sum[:3]) + ")"
	}
	if x.Invalid != "" {
		x.Invalid = "it is not valid"
	}
	if x.Gate != "" {
		x.Gate = "something outside of sluice"
	}
	x.Settle()
	m.Workload, m.Name = &x, name
	m.Reason, m.Told = admission.Reason{}, ""
	if m.Admission != nil {
		a := *m.Admission
		a.Key = name
		m.Admission = &a
	}
	if m.Before != nil && m.Before.Admission != nil {
		a := *m.Before.Admission
		a.Key = name
		m.Before = &admission.Before{Phase: m.Before.Phase, Admission: &a}
	}
	m.Pods = slices.Clone(m.Pods)
	for i := range m.Pods {
		m.Pods[i].Key, m.Pods[i].Workload = fmt.Sprintf("%s pod %d", name, i), name
	}
}
