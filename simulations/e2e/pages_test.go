package e2e

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"sluice.dev/sluice/admission/api/pages/browser"
)

// lead is a team lead: who may see the gangs of the scene and change the weight of
// its queue, and nothing else.
const lead = "lead"

// mayLead gives the lead these rights, and the controller those to ask who somebody is.
func (s *stage) mayLead(t *testing.T) {
	t.Helper()
	if err := rbacv1.AddToScheme(s.Cluster().Scheme()); err != nil {
		t.Fatal(err)
	}
	bind := func(name, role string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: scene, Name: lead}},
		}
	}
	if err := s.Apply(t.Context(), filepath.Join(s.root, "deploy", "answers")); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: scene, Name: lead}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "e2e-lead"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{kueue.GroupVersion.Group}, Resources: []string{"workloads"}, Verbs: []string{"list"}},
			{APIGroups: []string{kueue.GroupVersion.Group}, Resources: []string{"clusterqueues"}, ResourceNames: []string{scene}, Verbs: []string{"get", "patch"}},
		}},
		bind("e2e-lead", "e2e-lead"),
	} {
		if err := client.IgnoreAlreadyExists(s.Cluster().Create(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own has ended
		defer cancel()
		for _, o := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "e2e-lead"}}, bind("e2e-lead", "e2e-lead"),
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "sluice-answers"}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "sluice-system", Name: "sluice-api"}},
		} {
			if err := client.IgnoreNotFound(s.Cluster().Delete(ctx, o)); err != nil {
				t.Error(err)
			}
		}
	})
}

// openUI starts `sluice ui` as the lead and returns the address of its pages.
func (s *stage) openUI(t *testing.T) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: scene, Name: lead}}
	request := &authenticationv1.TokenRequest{}
	eventually(t, "the lead has a token", func() error { return s.Cluster().SubResource("token").Create(t.Context(), account, request) })
	config := s.Cluster().Config
	text, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "e2e", Contexts: map[string]*clientcmdapi.Context{"e2e": {Cluster: "e2e", AuthInfo: lead}},
		Clusters: map[string]*clientcmdapi.Cluster{"e2e": {
			Server: config.Host, TLSServerName: config.ServerName, InsecureSkipTLSVerify: config.Insecure, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{lead: {Token: request.Status.Token}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubeconfig, program := filepath.Join(dir, "config"), filepath.Join(dir, "sluice")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/sluice")
	build.Dir = s.root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build sluice: %v\n%s", err, out)
	}
	ui := exec.CommandContext(t.Context(), program, "ui", "--kubeconfig", kubeconfig, "--token", request.Status.Token, "--api", s.Answers())
	ui.Stderr = progress
	out, err := ui.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ui.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ui.Process.Kill(); _ = ui.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("sluice ui says no address: %v", err)
	}
	return strings.TrimSpace(address)
}

// The pages of a running controller, in a browser: a card that is cut while one looks
// is drawn as it is, a gang that waits says why, a weight is tried, then applied with
// the lead's own rights, and the console has nothing to say.
func TestPages(t *testing.T) {
	b := browser.Open(t)
	s := onStage(t)
	defer s.setScene(t)()
	s.mayLead(t)
	at := s.openUI(t)
	b.Show(browser.Screens[0])

	card := `[...document.querySelectorAll("#n-mig-0 svg.card")].map(e => e.getAttribute("aria-label"))`
	b.Visit(at + "map")
	b.Until(card + `[1]?.includes("3g.20gb free; 3g.20gb free")`)
	b.Picture("e2e-map-before")
	defer func() { // the next test may stop the device plugin at once
		s.machine(t, "mig-0 clear 1", "mig-0 cut 1 3g.20gb@4 3g.20gb@0")
		s.offers(t, "mig-0", "mig-7g.40gb", 0)
	}()
	s.machine(t, "mig-0 clear 1", "mig-0 cut 1 7g.40gb")
	b.Until(card + `[1]?.includes("7g.40gb free")`)

	whole, wide := asks("whole-slice", 1, "mig-7g.40gb", 1, lasting), asks("wide", 2, "mig-7g.40gb", 1)
	s.create(t, whole)
	defer s.withdraw(t, whole)
	s.allRun(t, whole, 1, "mig-0")
	b.Until(card + `[1]?.includes("7g.40gb scene/")`)
	b.Picture("e2e-map-after")

	s.create(t, wide)
	defer s.withdraw(t, wide)
	s.tellsWhy(t, wide, "Layout", []string{"mig-0"})
	b.Visit(at + "jobs?q=wide")
	b.Until(`document.querySelectorAll("#t-jobs tbody th a").length === 1`)
	b.Do("open it", chromedp.Click(chromedp.CSS("#t-jobs tbody th a"), chromedp.NodeVisible))
	b.Until(`document.querySelector(".verdict")?.innerText.includes("Layout")`)
	b.Picture("e2e-gang")

	eventually(t, "the weight is applied", func() error {
		b.Visit(at + "queue?name=" + scene)
		b.Do("ask what if", chromedp.SetValue(chromedp.CSS("#weight"), "3"), chromedp.Submit(chromedp.CSS("section form.ask")))
		b.Until(`document.querySelector("h1")?.innerText.startsWith("scene weighed 3")`)
		b.Until(`!document.getElementById("apply").hidden`)
		b.Picture("e2e-what-if")
		b.Do("apply", chromedp.Click(chromedp.CSS("#apply"), chromedp.NodeVisible))
		b.Until(`document.getElementById("applied").textContent !== ""`)
		if said := browser.Eval[string](b, `document.getElementById("applied").textContent`); !strings.HasPrefix(said, "Applied") {
			return errors.New(said) // something moved between the preview and this
		}
		return nil
	})
	cq := &kueue.ClusterQueue{}
	if err := s.Cluster().Get(t.Context(), client.ObjectKey{Name: scene}, cq); err != nil || cq.Spec.FairSharing == nil || cq.Spec.FairSharing.Weight.String() != "3" {
		t.Errorf("the queue has %+v: %v", cq.Spec.FairSharing, err)
	}
	b.Visit(at + "queue?name=gone")
	for _, c := range b.Complaints() {
		if !strings.Contains(c, "404") || !strings.Contains(c, "name=gone") { // of the page that is not there
			t.Error(c)
		}
	}
	b.Visit(at)
	b.Picture("e2e-overview")
	for _, c := range b.Complaints() {
		t.Error(c)
	}
	tell(t, "pictures are in %s", filepath.Join(s.root, "out", "pages"))
}
