package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is how long every certificate is valid. It starts an hour back, for
// clocks that run apart.
const lifetime = 10 * 365 * 24 * time.Hour

// User is an identity that a client certificate proves: the API server reads
// the common name as the user and each organization as a group.
type User struct {
	Name   string // of the files
	User   string
	Groups []string
}

// Authority signs the certificates in one folder.
type Authority struct {
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// Open reads the authority in folder, or makes it.
func Open(folder string) (*Authority, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create certificate folder: %w", err)
	}
	a := &Authority{folder: folder}
	pair, err := tls.LoadX509KeyPair(a.Cert("ca"), a.Key("ca"))
	if err == nil {
		key, isECDSA := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !isECDSA {
			return nil, fmt.Errorf("read %s: not an ECDSA key", a.Key("ca"))
		}
		a.cert, a.key = pair.Leaf, key
		return a, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "sluice-sandbox-ca"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	if a.cert, a.key, err = a.issue("ca", template); err != nil {
		return nil, err
	}
	return a, nil
}

// Cert is the path of a certificate.
func (a *Authority) Cert(name string) string { return filepath.Join(a.folder, name+".crt") }

// Key is the path of a private key.
func (a *Authority) Key(name string) string { return filepath.Join(a.folder, name+".key") }

// Pool holds the authority's certificate alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Server makes the certificate of a server on loopback that is also the
// cluster's service `kubernetes`, unless it is there.
func (a *Authority) Server(name string, serviceIP net.IP) error {
	return a.ensure(name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), serviceIP},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		},
	})
}

// Client makes the certificate of a user, unless it is there.
func (a *Authority) Client(u User) error {
	return a.ensure(u.Name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: u.User, Organization: u.Groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// KeyPair makes a private key and its public half, NAME.pub, unless they are
// there. Service account tokens are signed with one and checked with the other.
func (a *Authority) KeyPair(name string) error {
	if _, err := os.Stat(a.Public(name)); err == nil {
		return nil
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	if err := a.writeKey(name, key); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writePEM(a.Public(name), "PUBLIC KEY", der, 0o644)
}

// Public is the path of the public half of a key made by KeyPair.
func (a *Authority) Public(name string) string { return filepath.Join(a.folder, name+".pub") }

func (a *Authority) ensure(name string, template *x509.Certificate) error {
	_, err := tls.LoadX509KeyPair(a.Cert(name), a.Key(name))
	if errors.Is(err, fs.ErrNotExist) {
		_, _, err = a.issue(name, template)
	}
	if err != nil {
		return fmt.Errorf("certificate %s: %w", name, err)
	}
	return nil
}

// issue signs a certificate, by itself if there is no authority yet, and
// writes its key first: a certificate on disk always has its key beside it.
func (a *Authority) issue(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(lifetime)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	if err := a.writeKey(name, key); err != nil {
		return nil, nil, err
	}
	if err := writePEM(a.Cert(name), "CERTIFICATE", der, 0o644); err != nil {
		return nil, nil, err
	}
	return cert, key, nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func (a *Authority) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(a.Key(name), "EC PRIVATE KEY", der, 0o600)
}

// writePEM puts the whole file in place at once.
func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	unfinished := path + ".unfinished"
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(unfinished, text, mode); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
