package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/admission/jobs"
	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// jobKinds are the kinds that the configuration describes.
func jobKinds(described []config.JobKind) []jobs.Kind {
	var kinds []jobs.Kind
	for _, d := range described {
		version, _ := schema.ParseGroupVersion(d.APIVersion) // the configuration was validated
		k := jobs.Kind{
			GVK: version.WithKind(d.Kind), Resource: d.Resource, Suspend: d.Suspend, Active: d.Active,
			Succeeded: outcomes(d.Succeeded), Failed: outcomes(d.Failed),
		}
		for _, ps := range d.PodSets {
			k.PodSets = append(k.PodSets, jobs.KindPodSet(ps))
		}
		kinds = append(kinds, k)
	}
	return kinds
}

func outcomes(described []config.JobOutcome) []jobs.Match {
	var list []jobs.Match
	for _, o := range described {
		list = append(list, jobs.Match(o))
	}
	return list
}
