// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/provisioning/policy"
)

type target struct {
	client.Client
	pods        typedcorev1.PodsGetter
	discovery   rest.Interface
	kinds       *kindMapper
	name        string
	namespace   string // default for objects without one
	transport   *attemptTransport
	credentials credentials
}

func (t *target) close() { t.transport.next.CloseIdleConnections() }

func (r *Reconciler) connectTarget(ctx context.Context, p *v1alpha1.Provision, log *policy.Log) (*target, error) {
	if p.Spec.Target.KubeconfigSecret != nil {
		return r.connectRemote(ctx, p, log)
	}
	return r.connectLocal(ctx, p, log)
}

func (r *Reconciler) connectRemote(ctx context.Context, p *v1alpha1.Provision, log *policy.Log) (*target, error) {
	ref := p.Spec.Target.KubeconfigSecret
	hold, err := r.serialReads.Acquire(ctx, p.Namespace, 1) // one at a time: decoding can multiply its size
	if err != nil {
		return nil, err
	}
	defer hold.Release()
	var secret corev1.Secret
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ref.Name}, &secret); err != nil {
		return nil, addRoleHint(p.Namespace, fmt.Errorf("kubeconfig: %w", err))
	}
	text, ok := secret.Data[ref.Key]
	if !ok {
		return nil, fmt.Errorf("kubeconfig: Secret %s has no key %s", ref.Name, ref.Key)
	}
	cfg, namespace, err := parseKubeconfig(text)
	if err != nil {
		return nil, newInvalidError("kubeconfig: key %s of Secret %s: %w", ref.Key, ref.Name, err)
	}
	if onLoopback(cfg.Host) {
		return nil, newInvalidError("kubeconfig: key %s of Secret %s: server %s is an address of loopback, and no target can be there: give an address at which Weir's pod reaches the cluster, and tls-server-name if its certificate has another name", ref.Key, ref.Name, cfg.Host)
	}
	log.HideSecrets(cfg.BearerToken, cfg.Password, string(cfg.KeyData))
	to := r.targetPolicy()
	to.acquireTurn = r.acquireResponse(p.Namespace)
	return r.newTarget(ctx, cfg, cfg.Host, namespace, to)
}

// targetPolicy returns the restrictions for kubeconfigs. If this cluster's API server is on loopback,
// Weir runs in a lab and targets may be on this machine.
func (r *Reconciler) targetPolicy() dialPolicy {
	return dialPolicy{allowHost: onLoopback(r.API.Host), dial: r.dial}
}

// acquireResponse waits for the namespace's turn to read a large response. The turn ends decodeTime
// after it was read.
func (r *Reconciler) acquireResponse(namespace string) func(context.Context) (time.Time, func(), error) {
	return func(ctx context.Context) (time.Time, func(), error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		hold, err := r.largeResponses.Acquire(ctx, namespace, 1)
		if err != nil {
			return time.Time{}, nil, fmt.Errorf("waiting to read a large response: %w", err)
		}
		expires := time.AfterFunc(largeResponseTimeout, hold.Release)
		return time.Now().Add(largeResponseTimeout), func() { expires.Reset(decodeTime) }, nil
	}
}

// minTokenTTL is the API server's minimum.
const minTokenTTL = 10 * time.Minute

// connectLocal connects with a ServiceAccount's token. Weir's own credentials are not used.
func (r *Reconciler) connectLocal(ctx context.Context, p *v1alpha1.Provision, log *policy.Log) (*target, error) {
	name := p.Spec.Target.ServiceAccountName
	within := minTokenTTL
	if deadline, ok := ctx.Deadline(); ok {
		within = max(within, time.Until(deadline)+time.Minute)
	}
	seconds := int64(within / time.Second)
	write := func(ctx context.Context) error { return r.writes.Wait(ctx, p.Namespace) }
	if err := write(ctx); err != nil {
		return nil, err
	}
	granted, err := r.Tokens.ServiceAccounts(p.Namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, addRoleHint(p.Namespace, fmt.Errorf("token of ServiceAccount %s: %w", name, err))
	}
	log.HideSecrets(granted.Status.Token)
	cfg := rest.AnonymousClientConfig(r.API)
	cfg.BearerToken = granted.Status.Token
	return r.newTarget(ctx, cfg, "this cluster, as ServiceAccount "+name, p.Namespace, dialPolicy{isLocal: true, write: write, acquireTurn: r.acquireResponse(p.Namespace)})
}

var targetScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(authenticationv1.AddToScheme(scheme))
	utilruntime.Must(batchv1.AddToScheme(scheme))
	utilruntime.Must(corev1.AddToScheme(scheme))
	return scheme
}()

func (r *Reconciler) newTarget(ctx context.Context, cfg *rest.Config, name, namespace string, to dialPolicy) (*target, error) {
	cfg.QPS, cfg.UserAgent, cfg.ContentType = -1, r.API.UserAgent, runtime.ContentTypeJSON
	cfg.WarningHandler, cfg.WarningHandlerWithContext = nil, rest.NoWarnings{} // keep target warnings out of Weir's log
	if r.Fence != nil {
		cfg = k8s.WithFence(cfg, r.Fence)
	}
	hc, wire, err := to.newClient(ctx, cfg)
	if err != nil {
		return nil, newInvalidError("target %s: %w", name, err)
	}
	core, err := typedcorev1.NewForConfigAndClient(cfg, hc)
	var c client.Client
	var kinds *kindMapper
	if err == nil {
		kinds = newKindMapper(ctx, core.RESTClient())
		c, err = client.New(cfg, client.Options{HTTPClient: hc, Scheme: targetScheme, Mapper: kinds})
	}
	if err != nil {
		wire.next.CloseIdleConnections()
		return nil, fmt.Errorf("target %s: %w", name, err)
	}
	return &target{Client: c, pods: core, discovery: core.RESTClient(), kinds: kinds, name: name, namespace: namespace, transport: wire, credentials: credentialsOf(cfg)}, nil
}

// onLoopback does not resolve names.
func onLoopback(host string) bool {
	u, err := url.Parse(host)
	if err != nil {
		return false
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback() || name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// addRoleHint adds the command that grants the role.
func addRoleHint(namespace string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("bind the role of attempts, kubectl -n %s create rolebinding weir-provisioning --clusterrole weir-provisioning-namespace "+
		"--serviceaccount weir-system:weir-provisioner: %w", namespace, err)
}
