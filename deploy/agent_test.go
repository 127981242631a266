package deploy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	arv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"sluice.dev/sluice/nodeagent/api/v1alpha1"
)

// An agent sits on every node with cards, so that what it may do is spelled out here
// once more, and a change of it is seen.
func TestAgentsMayLittle(t *testing.T) {
	allowed := func(rules []rbacv1.PolicyRule) []string {
		var all []string
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				all = append(all, fmt.Sprintf("%s %v", resource, rule.Verbs))
			}
		}
		return all
	}
	for _, role := range of[*rbacv1.ClusterRole](t, "agent") {
		if got, want := allowed(role.Rules), []string{"nodes [get]", "sliceinventories [get create patch]"}; !slices.Equal(got, want) {
			t.Errorf("ClusterRole %s: %q, want %q", role.Name, got, want)
		}
	}
	for _, role := range of[*rbacv1.Role](t, "agent") {
		if got, want := allowed(role.Rules), []string{"leases [create patch]"}; !slices.Equal(got, want) || role.Namespace != v1alpha1.HeartbeatNamespace {
			t.Errorf("Role %s/%s: %q, want %q in %s", role.Namespace, role.Name, got, want, v1alpha1.HeartbeatNamespace)
		}
	}
	for _, account := range of[*corev1.ServiceAccount](t, "agent") {
		if account.Name != v1alpha1.AgentName || account.Namespace != v1alpha1.HeartbeatNamespace {
			t.Errorf("service account %s/%s, want %s/%s", account.Namespace, account.Name, v1alpha1.HeartbeatNamespace, v1alpha1.AgentName)
		}
	}
}

// Whoever reads this file knows what of the host an agent sees.
func TestAgentsSeeLittle(t *testing.T) {
	for _, set := range of[*appsv1.DaemonSet](t, "agent") {
		pod := set.Spec.Template.Spec
		if pod.HostNetwork || pod.HostPID || pod.HostIPC {
			t.Errorf("%s shares the host's network, processes or memory", set.Name)
		}
		if pod.ServiceAccountName != v1alpha1.AgentName || set.Namespace != v1alpha1.HeartbeatNamespace {
			t.Errorf("%s/%s runs as %s", set.Namespace, set.Name, pod.ServiceAccountName)
		}
		var paths []string
		for _, volume := range pod.Volumes {
			if volume.HostPath != nil {
				paths = append(paths, volume.HostPath.Path)
			}
		}
		if want := []string{"/var/lib/kubelet/pod-resources"}; !slices.Equal(paths, want) {
			t.Errorf("%s mounts %v of the host, want %v", set.Name, paths, want)
		}
		for _, c := range pod.Containers {
			for _, mount := range c.VolumeMounts {
				if !mount.ReadOnly {
					t.Errorf("%s may write %s", set.Name, mount.MountPath)
				}
			}
			s := c.SecurityContext
			if s.Privileged != nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
				!reflect.DeepEqual(s.Capabilities, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"SYS_ADMIN"}}) {
				t.Errorf("%s: %s has other privileges than to see how cards are cut: %+v", set.Name, c.Name, s)
			}
		}
	}
}

// The policies are written in a language that does not know the names in the code.
func TestPoliciesNameTheAgents(t *testing.T) {
	bound := map[string]bool{}
	for _, b := range of[*arv1.ValidatingAdmissionPolicyBinding](t, "agent") {
		if !slices.Equal(b.Spec.ValidationActions, []arv1.ValidationAction{arv1.Deny}) || b.Spec.MatchResources != nil {
			t.Errorf("binding %s does not deny everywhere: %+v", b.Name, b.Spec)
		}
		bound[b.Spec.PolicyName] = true
	}
	var guarded []string
	for _, p := range of[*arv1.ValidatingAdmissionPolicy](t, "agent") {
		if !bound[p.Name] || p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != arv1.Fail || len(p.Spec.MatchConditions) != 0 {
			t.Errorf("policy %s is not bound, or lets through what it cannot judge", p.Name)
		}
		for _, rule := range p.Spec.MatchConstraints.ResourceRules {
			guarded = append(guarded, rule.Resources...)
			if got, want := rule.Operations, []arv1.OperationType{arv1.Create, arv1.Update, arv1.Delete}; !slices.Equal(got, want) {
				t.Errorf("policy %s guards %v, want %v", p.Name, got, want)
			}
		}
		variables := map[string]string{}
		for _, v := range p.Spec.Variables {
			variables[v.Name] = v.Expression
		}
		if want := fmt.Sprintf("request.userInfo.username == %q", v1alpha1.AgentUser); variables["agent"] != want {
			t.Errorf("policy %s: an agent is %s, want %s", p.Name, variables["agent"], want)
		}
		if !strings.Contains(variables["node"], fmt.Sprintf("request.userInfo.extra[%q]", v1alpha1.NodeNameClaim)) {
			t.Errorf("policy %s: the node is %s", p.Name, variables["node"])
		}
		if s := p.Spec.MatchConstraints.NamespaceSelector; s != nil && s.MatchLabels[corev1.LabelMetadataName] != v1alpha1.HeartbeatNamespace {
			t.Errorf("policy %s is for namespaces %v", p.Name, s.MatchLabels)
		}
	}
	if want := []string{"sliceinventories", "leases"}; !slices.Equal(guarded, want) {
		t.Errorf("guarded are %v, want %v", guarded, want)
	}
}
