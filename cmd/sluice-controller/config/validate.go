package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Frameworks lists the integrations that the controller is built with.
var Frameworks = []string{
	"batch/job",
	"deployment",
	"jobset.x-k8s.io/jobset",
	"kubeflow.org/jaxjob",
	"kubeflow.org/mpijob",
	"kubeflow.org/paddlejob",
	"kubeflow.org/pytorchjob",
	"kubeflow.org/tfjob",
	"kubeflow.org/xgboostjob",
	"leaderworkerset.x-k8s.io/leaderworkerset",
	"pod",
	"ray.io/raycluster",
	"ray.io/rayjob",
	"ray.io/rayservice",
	"sparkoperator.k8s.io/sparkapplication",
	"statefulset",
	"trainer.kubeflow.org/trainjob",
	"workload.codeflare.dev/appwrapper",
}

// podFrameworks queue the pods of their objects, through the integration "pod".
var podFrameworks = []string{"deployment", "leaderworkerset.x-k8s.io/leaderworkerset", "statefulset"}

// refusals collects what is wrong with a file, each with its line.
type refusals struct {
	name string
	root *yaml.Node
	all  []error
}

func (r *refusals) refuse(path, format string, args ...any) {
	message := path + ": " + fmt.Sprintf(format, args...)
	if r.root != nil {
		message = fmt.Sprintf("%s:%d: %s", r.name, lineOf(r.root, path), message)
	}
	r.all = append(r.all, errors.New(message))
}

// Validate reports every value that the controller could not run with. It is
// for a Configuration that was changed after it was read, as by flags.
func (c Configuration) Validate() error { return c.validate("", nil) }

// validate is Validate, with the line of each refusal if root is the text of c.
func (c Configuration) validate(name string, root *yaml.Node) error {
	r := &refusals{name: name, root: root}
	if c.APIVersion != APIVersion {
		r.refuse("apiVersion", "%q, want %q", c.APIVersion, APIVersion)
	}
	if c.Kind != Kind {
		r.refuse("kind", "%q, want %q", c.Kind, Kind)
	}
	if c.Namespace == "" {
		r.refuse("namespace", "empty, want the namespace that sluice lives in")
	}
	r.policy(c.Policy)
	if !slices.Contains([]Submit{SubmitWarn, SubmitRefuse, SubmitSilent}, c.Submit) {
		r.refuse("submit", "%q, want %s, %s or %s", c.Submit, SubmitWarn, SubmitRefuse, SubmitSilent)
	}
	r.labelPolicies(c.LabelPolicies)
	r.integrations(c.Integrations)
	if c.Integrations.Volcano && !c.Webhook.Enabled {
		r.refuse("integrations.volcano", "true, but pods are taken over by a webhook, and webhook.enabled is false")
	}
	r.webhook(c.Webhook)
	r.leaderElection(c.LeaderElection)
	if c.Journal.Path == "" {
		r.refuse("journal.path", "empty, want a file")
	}
	if !(c.Client.QPS > 0) { // Also refuses NaN.
		r.refuse("client.qps", "%v, want more than 0", c.Client.QPS)
	}
	if c.Client.Burst < 1 {
		r.refuse("client.burst", "%d, want at least 1", c.Client.Burst)
	}
	r.address("metrics.bindAddress", c.Metrics.BindAddress)
	r.address("health.bindAddress", c.Health.BindAddress)
	r.address("api.bindAddress", c.API.BindAddress)
	return errors.Join(r.all...)
}

func (r *refusals) policy(p Policy) {
	if p.ReserveAfter <= 0 {
		r.refuse("policy.reserveAfter", "%v, want more than 0", p.ReserveAfter)
	}
	if p.RecoveryWindow < 0 {
		r.refuse("policy.recoveryWindow", "%v is negative", p.RecoveryWindow)
	}
	if p.MinRuntime < 0 {
		r.refuse("policy.minRuntime", "%v is negative", p.MinRuntime)
	}
	if p.HalfLife < 0 {
		r.refuse("policy.halfLife", "%v, want 0 or more", p.HalfLife)
	}
	if p.Reservations < 0 {
		r.refuse("policy.reservations", "%d, want 0 or more", p.Reservations)
	}
	if wrong := validation.IsQualifiedName(p.UserKey); len(wrong) > 0 {
		r.refuse("policy.userKey", "%q: %s", p.UserKey, strings.Join(wrong, "; "))
	}
	if p.GrowEvery <= 0 {
		r.refuse("policy.growEvery", "%v, want more than 0", p.GrowEvery)
	}
	if p.Placement != PlacementPack {
		r.refuse("policy.placement", "%q, want %q", p.Placement, PlacementPack)
	}
}

func (r *refusals) labelPolicies(list []LabelPolicy) {
	given := map[string]string{} // by selector and key: the value
	for n, p := range list {
		if p.Name == "" || slices.ContainsFunc(list[:n], func(q LabelPolicy) bool { return q.Name == p.Name }) {
			r.refuse("labelPolicies", "number %d is called %q, want a name of its own", n+1, p.Name)
		}
		if len(p.Selector) == 0 || len(p.Labels) == 0 {
			r.refuse("labelPolicies", "%s: selector and labels must not be empty", p.Name)
		}
		for _, m := range []map[string]string{p.Selector, p.Labels} {
			for k, v := range m {
				if wrong := slices.Concat(validation.IsQualifiedName(k), validation.IsValidLabelValue(v)); len(wrong) > 0 {
					r.refuse("labelPolicies", "%s: label %s=%s: %s", p.Name, k, v, strings.Join(wrong, "; "))
				}
			}
		}
		for k, v := range p.Labels {
			at := fmt.Sprint(p.Selector, k)
			if other, twice := given[at]; twice && other != v {
				r.refuse("labelPolicies", "%s: label %s is to be %s and %s on the same nodes", p.Name, k, other, v)
			}
			given[at] = v
		}
	}
}

func (r *refusals) integrations(i Integrations) {
	if len(i.Frameworks) == 0 {
		r.refuse("integrations.frameworks", "empty, want at least one of %s", strings.Join(Frameworks, ", "))
	}
	for n, name := range i.Frameworks {
		if !slices.Contains(Frameworks, name) {
			r.refuse("integrations.frameworks", "unknown framework %q, want one of %s", name, strings.Join(Frameworks, ", "))
		}
		if slices.Contains(podFrameworks, name) && !slices.Contains(i.Frameworks, "pod") {
			r.refuse("integrations.frameworks", "%q queues the pods of its objects, so \"pod\" must be named too", name)
		}
		if slices.Contains(i.Frameworks[:n], name) {
			r.refuse("integrations.frameworks", "%q is named twice", name)
		}
	}
	for n, k := range i.Kinds {
		r.kind(fmt.Sprintf("integrations.kinds.%d", n), k)
	}
}

// kind refuses a kind of job that could not be queued.
func (r *refusals) kind(at string, k JobKind) {
	if version, err := schema.ParseGroupVersion(k.APIVersion); err != nil || version.Group == "" || version.Version == "" {
		r.refuse(at+".apiVersion", "%q, want GROUP/VERSION", k.APIVersion)
	}
	if k.Kind == "" {
		r.refuse(at+".kind", "empty, want the name of a kind")
	}
	r.path(at+".suspend", k.Suspend, true)
	r.path(at+".active", k.Active, false)
	if len(k.PodSets) == 0 {
		r.refuse(at+".podSets", "empty, want at least one")
	}
	for n, ps := range k.PodSets {
		in := fmt.Sprintf("%s.podSets.%d", at, n)
		r.path(in+".template", ps.Template, true)
		r.path(in+".each", ps.Each, false)
		r.path(in+".count", ps.Count, false)
		r.path(in+".minCount", ps.MinCount, false)
	}
	if len(k.Succeeded)+len(k.Failed) == 0 {
		r.refuse(at+".succeeded", "empty, as is failed: nothing says when a job has ended")
	}
	for name, list := range map[string][]JobOutcome{"succeeded": k.Succeeded, "failed": k.Failed} {
		for n, o := range list {
			in := fmt.Sprintf("%s.%s.%d", at, name, n)
			switch {
			case (o.Condition == "") == (o.Path == ""):
				r.refuse(in, "want either a condition or a path with values")
			case o.Path != "" && len(o.Values) == 0:
				r.refuse(in+".values", "empty, want what %s says then", o.Path)
			}
			r.path(in+".path", o.Path, false)
		}
	}
}

// path refuses what is no dotted path of fields.
func (r *refusals) path(at, dotted string, needed bool) {
	switch {
	case dotted == "" && needed:
		r.refuse(at, "empty, want a path of fields, as spec.template")
	case dotted != "" && slices.Contains(strings.Split(dotted, "."), ""), strings.ContainsAny(dotted, "[]* /"):
		r.refuse(at, "%q, want fields with dots between them, as spec.template", dotted)
	}
}

func (r *refusals) webhook(w Webhook) {
	if !w.Enabled {
		return
	}
	r.port("webhook.port", w.Port)
	if w.CertDir == "" {
		r.refuse("webhook.certDir", "empty, want a folder")
	}
	if w.URL == "" {
		if w.Service.Name == "" {
			r.refuse("webhook.service.name", "empty, want the name of a Service, or set webhook.url")
		}
		r.port("webhook.service.port", w.Service.Port)
		return
	}
	u, err := url.Parse(w.URL)
	switch {
	case err != nil:
		r.refuse("webhook.url", "%v", err)
	case u.Scheme != "https" || u.Hostname() == "":
		r.refuse("webhook.url", "%q, want https://HOST:PORT", w.URL)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		r.refuse("webhook.url", "%q, want no user, query or fragment", w.URL)
	case w.RotateCertificates && net.ParseIP(u.Hostname()) != nil:
		r.refuse("webhook.url", "the host is the IP address %s, but the certificates made here name hosts only: use a host name, as localhost", u.Hostname())
	}
}

func (r *refusals) leaderElection(l LeaderElection) {
	if !l.Enabled {
		return
	}
	if l.ResourceName == "" {
		r.refuse("leaderElection.resourceName", "empty, want the name of a Lease")
	}
	if l.RetryPeriod <= 0 {
		r.refuse("leaderElection.retryPeriod", "%v, want more than 0", l.RetryPeriod)
	}
	// The elector wants room for several retries within the deadline.
	if l.RenewDeadline <= l.RetryPeriod*12/10 {
		r.refuse("leaderElection.renewDeadline", "%v, want more than 1.2 × retryPeriod, %v", l.RenewDeadline, l.RetryPeriod*12/10)
	}
	if l.LeaseDuration <= l.RenewDeadline || l.LeaseDuration < time.Second {
		r.refuse("leaderElection.leaseDuration", "%v, want at least 1s and more than renewDeadline, %v", l.LeaseDuration, l.RenewDeadline)
	}
}

func (r *refusals) port(path string, port int) {
	if port < 1 || port > 65535 {
		r.refuse(path, "%d, want 1 to 65535", port)
	}
}

func (r *refusals) address(path, address string) {
	if address == "0" {
		return
	}
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		r.refuse(path, "%q, want HOST:PORT, :PORT, or \"0\" for none", address)
	}
}
