package certs

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

var (
	kcm   = User{Name: "kcm", User: "system:kube-controller-manager"}
	admin = User{Name: "admin", User: "admin", Groups: []string{"system:masters"}}
)

func open(t *testing.T, folder string) *Authority {
	t.Helper()
	a, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Server("server", net.IPv4(10, 0, 0, 1)); err != nil {
		t.Fatal(err)
	}
	for _, u := range []User{admin, kcm} {
		if err := a.Client(u); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.KeyPair("sa"); err != nil {
		t.Fatal(err)
	}
	return a
}

// A real handshake in both directions says more than any field of a certificate.
func TestServerAndClientTrustEachOther(t *testing.T) {
	a := open(t, t.TempDir())
	pair, err := tls.LoadX509KeyPair(a.Cert("server"), a.Key("server"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		_, _ = io.WriteString(w, subject.CommonName+" in "+strings.Join(subject.Organization, ","))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: a.Pool(), ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	defer server.Close()

	for user, want := range map[string]string{"admin": "admin in system:masters", "kcm": "system:kube-controller-manager in "} {
		pair, err := tls.LoadX509KeyPair(a.Cert(user), a.Key(user))
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: a.Pool(), Certificates: []tls.Certificate{pair},
		}}}
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(text) != want {
			t.Errorf("%s: the server saw %q, want %q", user, text, want)
		}
	}
}

func TestServerIsGoodForEveryNameOfTheCluster(t *testing.T) {
	a := open(t, t.TempDir())
	pair, err := tls.LoadX509KeyPair(a.Cert("server"), a.Key("server"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"127.0.0.1", "10.0.0.1", "localhost", "kubernetes.default.svc"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: "example.com"}); err == nil {
		t.Error("the certificate is good for example.com as well")
	}
}

func TestWhatIsThereIsKeptAndWhatIsMissingIsAdded(t *testing.T) {
	folder := t.TempDir()
	a := open(t, folder)
	names := []string{a.Cert("ca"), a.Key("ca"), a.Cert("server"), a.Key("kcm"), a.Key("sa"), a.Public("sa")}
	before := make(map[string]string)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		before[name] = string(text)
	}
	if err := os.Remove(a.Cert("admin")); err != nil { // as if a crash came before it was written
		t.Fatal(err)
	}

	again := open(t, folder)
	for _, name := range names {
		if text, _ := os.ReadFile(name); string(text) != before[name] {
			t.Errorf("%s changed", name)
		}
	}
	pair, err := tls.LoadX509KeyPair(again.Cert("admin"), again.Key("admin"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("the added certificate is not from the same authority: %v", err)
	}
}

func TestKeysAreForTheirOwnerOnly(t *testing.T) {
	folder := t.TempDir() + "/pki"
	a := open(t, folder)
	for _, path := range []string{folder, a.Key("ca"), a.Key("admin"), a.Key("sa")} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
}

func TestDamagedAuthorityIsNamedNotReplaced(t *testing.T) {
	folder := t.TempDir()
	a := open(t, folder)
	if err := os.WriteFile(a.Cert("ca"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); err == nil {
		t.Fatal("a damaged authority was accepted or replaced")
	}
}
