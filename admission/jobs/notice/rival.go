package notice

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Whose scheduler holds a lease is known by its name, if nobody renamed it. That of
// Volcano's is called after the name under which pods ask for it.
const (
	kueueLease   = "c1f6bfd2.kueue.x-k8s.io"
	volcanoLease = "vc-scheduler"
	volcanoName  = "volcano"
)

// managers are whose scheduler writes under the name of a field manager. Kueue's
// admissions have one that sluice's have too, so that a cluster can go back; its other
// writes have not.
var managers = map[string]string{"kueue": "Kueue", "vc-scheduler": "Volcano"}

// Rival is another scheduler that is running.
type Rival struct {
	// Scheduler is whose it is: Kueue or Volcano.
	Scheduler string
	// Seen is by what it was noticed: a kind, namespace and name.
	Seen string
}

// Admits says that it would write the same fields of the same objects as sluice. For
// Volcano's scheduler that holds for its PodGroups only, if sluice reads them.
func (r Rival) Admits(podGroups bool) bool { return podGroups || r.Scheduler == "Kueue" }

func (r Rival) String() string { return fmt.Sprintf("%s's scheduler runs (%s)", r.Scheduler, r.Seen) }

// Rivals looks for other schedulers: for a lease that was renewed of late, for
// Deployments with pods that are ready, and for who has written queues and PodGroups
// since a time, if it is not zero. What may not be read is taken as not there.
func Rivals(ctx context.Context, reader client.Reader, now, since time.Time) ([]Rival, error) {
	var found []Rival
	var leases coordinationv1.LeaseList
	if err := reader.List(ctx, &leases); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("look for leases of other schedulers: %w", err)
	}
	for i := range leases.Items {
		l := &leases.Items[i]
		if who := leads(l.Name); who != "" && held(l, now) {
			found = append(found, Rival{who, "Lease " + l.Namespace + "/" + l.Name})
		}
	}
	var deployments appsv1.DeploymentList
	if err := reader.List(ctx, &deployments); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("look for deployments of other schedulers: %w", err)
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if who := runs(d); who != "" && d.Status.ReadyReplicas > 0 {
			found = append(found, Rival{who, "Deployment " + d.Namespace + "/" + d.Name})
		}
	}
	if since.IsZero() {
		return found, nil
	}
	written, err := writers(ctx, reader, since)
	return append(found, written...), err
}

// leads is whose scheduler holds a lease of that name, or "".
func leads(lease string) string {
	switch lease {
	case kueueLease:
		return "Kueue"
	case volcanoLease, volcanoName:
		return "Volcano"
	}
	return ""
}

// writers are the schedulers whose field managers have written queues or PodGroups
// since then; each is named once. It is how one is noticed whose lease has another name.
func writers(ctx context.Context, reader client.Reader, since time.Time) ([]Rival, error) {
	var found []Rival
	for _, kind := range []schema.GroupVersionKind{
		kueueVersion.WithKind("ClusterQueue"), kueueVersion.WithKind("LocalQueue"),
		volcanoVersion.WithKind("Queue"), volcanoVersion.WithKind("PodGroup"),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		err := reader.List(ctx, list)
		if apimeta.IsNoMatchError(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return found, fmt.Errorf("look who writes objects of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			for _, m := range list.Items[i].ManagedFields {
				who := managers[m.Manager]
				if who == "" || m.Time == nil || m.Time.Time.Before(since) || slices.ContainsFunc(found, func(r Rival) bool { return r.Scheduler == who }) {
					continue
				}
				found = append(found, Rival{who, "field manager " + m.Manager + " of " + kind.Kind + " " + strings.TrimPrefix(list.Items[i].Namespace+"/"+list.Items[i].Name, "/")})
			}
		}
	}
	return found, nil
}

// held says that somebody holds the lease now.
func held(l *coordinationv1.Lease, now time.Time) bool {
	s := l.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(s.RenewTime.Add(2 * time.Duration(*s.LeaseDurationSeconds) * time.Second))
}

// runs is whose scheduler the Deployment runs, by the names of its images: kueue and
// vc-scheduler, wherever they were pulled from.
func runs(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(path.Base(c.Image), "@")
		switch image, _, _ = strings.Cut(image, ":"); image {
		case "kueue":
			return "Kueue"
		case "vc-scheduler":
			return "Volcano"
		}
	}
	return ""
}

// lookEvery is how often rivals are looked for.
const lookEvery = 10 * time.Second

// Await returns when no scheduler runs that writes the same objects. It says once
// which one it waits for, and nothing of sluice acts meanwhile.
func Await(ctx context.Context, reader client.Reader, podGroups bool, log logr.Logger) error {
	began := time.Now()
	for said := ""; ; {
		found, err := Rivals(ctx, reader, time.Now(), began)
		if err != nil {
			return err
		}
		rival, ok := admitting(found, podGroups)
		if !ok {
			return nil
		}
		if rival.String() != said {
			said = rival.String()
			log.Error(nil, "another scheduler admits the same workloads; sluice waits until it is stopped", "reason", said)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

func admitting(found []Rival, podGroups bool) (Rival, bool) {
	for _, r := range found {
		if r.Admits(podGroups) {
			return r, true
		}
	}
	return Rival{}, false
}

// Watch adds to a manager what looks for rivals while sluice runs and says so in the
// log, once for each that comes.
func Watch(mgr manager.Manager, podGroups bool) error {
	log, reader := mgr.GetLogger().WithName("notice"), mgr.GetAPIReader()
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		known, last := map[Rival]bool{}, time.Now()
		for {
			next := time.Now()
			found, err := Rivals(ctx, reader, next, last)
			if err != nil && ctx.Err() == nil {
				log.V(1).Info("other schedulers not looked for", "reason", err.Error())
			}
			now := map[Rival]bool{}
			for _, r := range found {
				now[r] = true
				if known[r] {
					continue
				}
				if r.Admits(podGroups) {
					log.Error(nil, "another scheduler admits the same workloads; stop one of the two", "reason", r.String())
				} else {
					log.Info("another scheduler runs beside; sluice leaves its PodGroups alone", "reason", r.String())
				}
			}
			if err == nil {
				known, last = now, next.Truncate(time.Second) // field managers have whole seconds
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(6 * lookEvery):
			}
		}
	}))
}
