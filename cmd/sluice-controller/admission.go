package main

import (
	"fmt"
	"sync/atomic"

	ctrl "sigs.k8s.io/controller-runtime"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/api"
	"sluice.dev/sluice/admission/journal"
	"sluice.dev/sluice/admission/kube"
	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// setupAdmission adds the deciding half: admission/kube, its loop and the
// journal. It is called after jobs.Setup, whose indexes it uses, and before the
// manager starts.
func setupAdmission(mgr ctrl.Manager, settings config.Configuration, copies kube.Copies, book *openBook) error {
	return kube.Setup(mgr, kube.Options{
		Copies:      copies,
		Config:      policy(settings.Policy),
		Namespace:   settings.Namespace,
		UserKey:     settings.Policy.UserKey,
		PodGroups:   settings.Integrations.Volcano,
		Labels:      labelPolicies(settings.LabelPolicies),
		OpenJournal: func() (kube.Journal, error) { return book.open(settings.Journal.Path) },
	})
}

func labelPolicies(list []config.LabelPolicy) []kube.LabelPolicy {
	var out []kube.LabelPolicy
	for _, p := range list {
		out = append(out, kube.LabelPolicy{Name: p.Name, Selector: p.Selector, Labels: p.Labels, Enforce: p.Enforce})
	}
	return out
}

// openBook is the journal while this replica leads, for those who ask for history.
type openBook struct {
	journal atomic.Pointer[journal.Journal]
}

// history reads what was decided about a workload or a queue.
func (b *openBook) history(workload, queue string, limit int) ([]admission.Decision, error) {
	j := b.journal.Load()
	if j == nil {
		return nil, api.ErrNoRecords
	}
	return j.History(journal.Filter{Workload: workload, Queue: queue}, limit)
}

func (b *openBook) open(path string) (kube.Journal, error) {
	j, err := journal.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if notice := j.Notice(); notice != "" {
		ctrl.Log.Info("journal opened", "path", path, "reason", notice)
	}
	b.journal.Store(j)
	return j, nil
}

// mostActs is how many gangs one cycle admits: four times what is written at a time.
const mostActs = 256

// policy is the core's policy as the owner wants it.
func policy(p config.Policy) admission.Config {
	c := admission.DefaultConfig()
	c.ReserveAfter = p.ReserveAfter
	c.MostActs = mostActs
	c.RecoveryWindow = p.RecoveryWindow
	c.MinRuntime = p.MinRuntime
	c.GrowEvery = p.GrowEvery
	c.HalfLife = p.HalfLife
	c.Reservations = p.Reservations
	c.FairReclaim = p.FairReclaim
	return c
}
