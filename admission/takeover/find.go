package takeover

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/workload"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// Adoption is one thing that runs.
type Adoption struct {
	Kind, Namespace, Name string
	Pods                  []Pod
	// Problem is why it is left as it is, or "".
	Problem string
	// Done says that there is nothing left to do about it.
	Done bool

	workload *kueue.Workload
	group    *volcano.PodGroup
}

// Pod is a pod that runs, in its pod set.
type Pod struct {
	Set string
	pod *corev1.Pod
	// host is the value of the node's label kubernetes.io/hostname, by which
	// admissions name nodes.
	host string
}

// Nodes are the nodes of the pods, each once.
func (a *Adoption) Nodes() []string {
	seen := map[string]bool{}
	for _, p := range a.Pods {
		seen[p.pod.Spec.NodeName] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// cluster is what is looked things up in.
type cluster struct {
	reader client.Reader
	pods   []corev1.Pod
	hosts  map[string]string // by node
	above  map[types.UID]*metav1.OwnerReference
}

func look(ctx context.Context, reader client.Reader) (*cluster, error) {
	c := &cluster{reader: reader, hosts: map[string]string{}, above: map[types.UID]*metav1.OwnerReference{}}
	var pods corev1.PodList
	if err := reader.List(ctx, &pods); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			c.pods = append(c.pods, *p)
		}
	}
	slices.SortFunc(c.pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		c.hosts[nodes.Items[i].Name] = nodes.Items[i].Labels[corev1.LabelHostname]
	}
	return c, nil
}

// Find is what runs of the family's: Workloads that are admitted and have pods, or
// PodGroups with pods on nodes.
func Find(ctx context.Context, reader client.Reader, f Family) ([]Adoption, error) {
	c, err := look(ctx, reader)
	if err != nil {
		return nil, err
	}
	if f == Volcano {
		return c.groups(ctx)
	}
	return c.workloads(ctx)
}

func (c *cluster) workloads(ctx context.Context) ([]Adoption, error) {
	var list kueue.WorkloadList
	if err := c.reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list Workloads: %w", err)
	}
	byOwner, byName := map[types.UID]*Adoption{}, map[string]*Adoption{}
	var found []*Adoption
	for i := range list.Items {
		wl := &list.Items[i]
		if wl.Status.Admission == nil || !workload.HasQuotaReservation(wl) || workload.IsFinished(wl) || ofSluice(wl) {
			continue
		}
		a := &Adoption{Kind: "Workload", Namespace: wl.Namespace, Name: wl.Name, workload: wl}
		if workload.IsEvicted(wl) {
			a.Problem = "it is being evicted: wait until its pods have stopped"
		}
		found = append(found, a)
		byName[wl.Namespace+"/"+wl.Name] = a
		for _, o := range wl.OwnerReferences {
			byOwner[o.UID] = a
		}
	}
	for i := range c.pods {
		p := &c.pods[i]
		a := byName[p.Namespace+"/"+p.Annotations[kueue.WorkloadAnnotation]]
		if a == nil {
			var err error
			if a, err = c.ownerAmong(ctx, p, byOwner); err != nil {
				return nil, err
			}
		}
		if a != nil {
			a.add(c, p, setOf(a.workload, p))
		}
	}
	return sorted(found), nil
}

// ofSluice says that the Workload is of a PodGroup, which sluice itself made.
func ofSluice(wl *kueue.Workload) bool {
	o := metav1.GetControllerOf(wl)
	return o != nil && o.Kind == "PodGroup"
}

func sorted(found []*Adoption) []Adoption {
	var list []Adoption
	for _, a := range found {
		if a.Problem == "" && len(a.Pods) == 0 {
			a.Problem = "no pod of it was found on a node: sluice takes it for a job that has just begun"
		}
		a.Done = a.Problem == "" && a.adopted()
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Adoption) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// add notes a pod of the adoption. One that cannot be told apart makes it a problem.
func (a *Adoption) add(c *cluster, p *corev1.Pod, set string) {
	host := c.hosts[p.Spec.NodeName]
	switch {
	case a.Problem != "":
	case p.DeletionTimestamp != nil:
		a.Problem = fmt.Sprintf("its pod %s is stopping: wait until it is gone", p.Name)
	case set == "":
		a.Problem = fmt.Sprintf("its pod %s could be of several pod sets; label it %s", p.Name, kueueconstants.PodSetLabel)
	case host == "":
		a.Problem = fmt.Sprintf("node %s of its pod %s has no label %s", p.Spec.NodeName, p.Name, corev1.LabelHostname)
	}
	a.Pods = append(a.Pods, Pod{Set: set, pod: p, host: host})
}

// mostLevels is how many owners a pod may have above it.
const mostLevels = 8

// ownerAmong follows the pod's owners up to one that has a Workload.
func (c *cluster) ownerAmong(ctx context.Context, p *corev1.Pod, byOwner map[types.UID]*Adoption) (*Adoption, error) {
	if a := byOwner[p.UID]; a != nil { // a plain pod, or one of a group of them
		return a, nil
	}
	o := metav1.GetControllerOf(p)
	for range mostLevels {
		if o == nil {
			return nil, nil
		}
		if a := byOwner[o.UID]; a != nil {
			return a, nil
		}
		next, err := c.ownerOf(ctx, p.Namespace, o)
		if err != nil {
			return nil, err
		}
		o = next
	}
	return nil, nil
}

// ownerOf is the controller of the object that the reference names.
func (c *cluster) ownerOf(ctx context.Context, namespace string, o *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	if up, known := c.above[o.UID]; known {
		return up, nil
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	err := c.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: o.Name}, m)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apimeta.IsNoMatchError(err):
	case err != nil:
		return nil, fmt.Errorf("read %s %s/%s: %w", o.Kind, namespace, o.Name, err)
	}
	up := metav1.GetControllerOf(m)
	c.above[o.UID] = up
	return up, nil
}

// setOf is the pod set of the Workload that the pod is of: the one it is labelled with,
// the only one, or the only one whose pods ask for the same. "" is none.
func setOf(wl *kueue.Workload, p *corev1.Pod) string {
	if label := p.Labels[kueueconstants.PodSetLabel]; slices.ContainsFunc(wl.Spec.PodSets, func(ps kueue.PodSet) bool { return string(ps.Name) == label }) {
		return label
	}
	if len(wl.Spec.PodSets) == 1 {
		return string(wl.Spec.PodSets[0].Name)
	}
	asks := requests(&p.Spec)
	name := ""
	for i := range wl.Spec.PodSets {
		if ps := &wl.Spec.PodSets[i]; requests(&ps.Template.Spec) == asks {
			if name != "" {
				return ""
			}
			name = string(ps.Name)
		}
	}
	return name
}

func requests(spec *corev1.PodSpec) string {
	list := resourcehelper.PodRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
	var all []string
	for name, q := range list {
		all = append(all, string(name)+"="+q.String())
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
