package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// Who the controller is in the cluster, as deploy/base has it.
const (
	controllerNamespace = "sluice-system"
	controllerAccount   = "sluice-controller"
)

// tokenLife is asked for each token; a cluster may grant less. Every run of the
// demo asks for a new one, which a running controller reads by itself.
const tokenLife = 30 * 24 * time.Hour

// writeCredentials writes the controller's kubeconfig and the token of its own
// service account. With it the controller has the rights that deploy/base
// grants, and no others.
func (d *Demo) writeCredentials(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: controllerAccount}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLife / time.Second)),
	}}
	err := eventually(ctx, d.say, "request a token for the controller", func() error {
		return d.cluster.SubResource("token").Create(ctx, account, request)
	})
	if err != nil {
		return fmt.Errorf("request a token for %s/%s: %w", controllerNamespace, controllerAccount, err)
	}
	if request.Status.Token == "" {
		return fmt.Errorf("request a token for %s/%s: the answer has none", controllerNamespace, controllerAccount)
	}
	if err := writeWhole(d.place.token(), []byte(request.Status.Token)); err != nil {
		return err
	}
	return d.writeKubeconfig()
}

func (d *Demo) writeKubeconfig() error {
	trust := d.cluster.Config.TLSClientConfig
	if len(trust.CAData) == 0 && trust.CAFile == "" && !trust.Insecure {
		return errors.New("write the controller's kubeconfig: the given one names no certificate authority")
	}
	text, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "demo",
		Contexts:       map[string]*clientcmdapi.Context{"demo": {Cluster: "demo", AuthInfo: controllerAccount}},
		Clusters: map[string]*clientcmdapi.Cluster{"demo": {
			Server: d.cluster.Config.Host, TLSServerName: trust.ServerName, InsecureSkipTLSVerify: trust.Insecure,
			CertificateAuthorityData: trust.CAData, CertificateAuthority: trust.CAFile,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{controllerAccount: {TokenFile: d.place.token()}},
	})
	if err != nil {
		return fmt.Errorf("encode the controller's kubeconfig: %w", err)
	}
	return writeWhole(d.place.kubeconfig(), text)
}
