// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"weir.dev/weir/internal/app"
)

// Leader connects to the leader's pod through the API server, so RBAC controls access.
type Leader struct {
	API       *rest.Config
	Namespace string
}

// Connection returns the default connection of commands, used without --operator-url.
func (l Leader) Connection() app.Connection {
	return app.Connection{Server: app.LeaderServer, Dial: l.Dial}
}

// Dial connects to a port of the leader's pod; it ignores the host. It opens no local port. Errors include a
// hint.
func (l Leader) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	pod, err := l.findPod(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	core, err := coreclient.NewForConfig(l.API)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", l.API.Host, err)
	}
	at := core.RESTClient().Get().Namespace(l.Namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	conn, err := forwardPort(ctx, l.API, at, port)
	return conn, l.addHint(pod, port, err)
}

func (l Leader) findPod(ctx context.Context, now time.Time) (string, error) {
	c, err := coordinationclient.NewForConfig(l.API)
	if err != nil {
		return "", fmt.Errorf("API server %s: %w", l.API.Host, err)
	}
	lease, err := c.Leases(l.Namespace).Get(ctx, app.LeaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("namespace %s has no Lease %s, which names the leader: does Weir run in another one (--weir-namespace)? One outside of the cluster is reached by --operator-url", l.Namespace, app.LeaseName)
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("you may not get Lease %s of namespace %s, which names the leader's pod: %w", app.LeaseName, l.Namespace, err)
	case err != nil:
		return "", fmt.Errorf("the leader is unknown: API server %s: %w", l.API.Host, err)
	}
	return podOfLease(lease, now)
}

// podOfLease returns the pod that holds a Lease; client-go's identity is HOSTNAME_UUID.
func podOfLease(lease *coordinationv1.Lease, now time.Time) (string, error) {
	holder, term := ptr.Deref(lease.Spec.HolderIdentity, ""), time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second
	if renewed := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}); holder == "" || !now.Before(renewed.Add(term)) {
		return "", fmt.Errorf("no process holds Lease %s/%s: weir status shows since when, and the fix", lease.Namespace, lease.Name)
	}
	pod, _, ok := strings.Cut(holder, "_")
	if !ok || len(validation.IsDNS1123Subdomain(pod)) > 0 {
		return "", fmt.Errorf("%q leads, which is no pod: where it runs, %s", holder, serverHint)
	}
	return pod, nil
}

// serverHint is the hint for a Weir that cannot be reached through the API server.
const serverHint = "use --operator-url " + app.LeaderServer

func (l Leader) addHint(pod, port string, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status):
	case status.Status().Code == http.StatusForbidden:
		return fmt.Errorf("pod %s/%s leads, but you may not forward a port to it: that requires get and create of pods/portforward there: %w", l.Namespace, pod, err)
	case status.Status().Code == http.StatusNotFound:
		return fmt.Errorf("%s leads, and is no pod of namespace %s: where it runs, %s: %w", pod, l.Namespace, serverHint, err)
	}
	return fmt.Errorf("no way to pod %s/%s, which leads: %w; by hand: kubectl -n %[1]s port-forward %[2]s %[4]s, then %[5]s", l.Namespace, pod, err, port, serverHint)
}
