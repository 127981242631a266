package notice

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// kueueLease is the name of the lease of Kueue's controller, if nobody renamed it.
const kueueLease = "c1f6bfd2.kueue.x-k8s.io"

// Rival is another scheduler that is running.
type Rival struct {
	// Scheduler is whose it is: Kueue or Volcano.
	Scheduler string
	// Seen is by what it was noticed: a kind, namespace and name.
	Seen string
}

// Admits says that it would write the same fields of the same objects as sluice. For
// Volcano's scheduler that holds for its PodGroups only, which sluice does not read.
func (r Rival) Admits() bool { return r.Scheduler == "Kueue" }

func (r Rival) String() string { return fmt.Sprintf("%s's scheduler runs (%s)", r.Scheduler, r.Seen) }

// Rivals looks for other schedulers: for a lease that was renewed of late, and for
// Deployments with pods that are ready. What may not be read is taken as not there.
func Rivals(ctx context.Context, reader client.Reader, now time.Time) ([]Rival, error) {
	var found []Rival
	var leases coordinationv1.LeaseList
	if err := reader.List(ctx, &leases); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("look for leases of other schedulers: %w", err)
	}
	for i := range leases.Items {
		if l := &leases.Items[i]; l.Name == kueueLease && held(l, now) {
			found = append(found, Rival{"Kueue", "Lease " + l.Namespace + "/" + l.Name})
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
func Await(ctx context.Context, reader client.Reader, log logr.Logger) error {
	for said := ""; ; {
		found, err := Rivals(ctx, reader, time.Now())
		if err != nil {
			return err
		}
		rival, ok := admitting(found)
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

func admitting(found []Rival) (Rival, bool) {
	for _, r := range found {
		if r.Admits() {
			return r, true
		}
	}
	return Rival{}, false
}

// Watch adds to a manager what looks for rivals while sluice runs and says so in the
// log, once for each that comes.
func Watch(mgr manager.Manager) error {
	log, reader := mgr.GetLogger().WithName("notice"), mgr.GetAPIReader()
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		known := map[Rival]bool{}
		for {
			found, err := Rivals(ctx, reader, time.Now())
			if err != nil && ctx.Err() == nil {
				log.V(1).Info("other schedulers not looked for", "reason", err.Error())
			}
			now := map[Rival]bool{}
			for _, r := range found {
				now[r] = true
				if known[r] {
					continue
				}
				if r.Admits() {
					log.Error(nil, "another scheduler admits the same workloads; stop one of the two", "reason", r.String())
				} else {
					log.Info("another scheduler runs beside; sluice leaves its PodGroups alone", "reason", r.String())
				}
			}
			if err == nil {
				known = now
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(6 * lookEvery):
			}
		}
	}))
}
