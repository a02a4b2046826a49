// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/leader"
)

// There is one Lease in the cluster, so its tests do not run in parallel.
type leaseEnv struct {
	*testing.T
	api typedcoordinationv1.LeaseInterface
}

func newLeaseEnv(t *testing.T) *leaseEnv {
	t.Helper()
	api, err := typedcoordinationv1.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	l := &leaseEnv{t, api.Leases("kube-system")}
	l.remove()
	t.Cleanup(l.remove)
	return l
}

func (l *leaseEnv) remove() {
	if err := l.api.Delete(context.Background(), lockerName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		l.Fatal(err)
	}
}

func (l *leaseEnv) get() *coordinationv1.Lease {
	l.Helper()
	stands, err := l.api.Get(l.Context(), lockerName, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return stands
}

func (l *leaseEnv) holder() string {
	l.Helper()
	if h := l.get().Spec.HolderIdentity; h != nil {
		name, _, _ := strings.Cut(*h, "_") // the suffix identifies the process
		return name
	}
	return ""
}

// upstreamAcquire acquires the Lease as cloud-provider-azure does.
func (l *leaseEnv) upstreamAcquire() error {
	l.Helper()
	stands, err := l.api.Get(l.Context(), lockerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		stands, err = l.api.Create(l.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: lockerName}, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(900))},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	s := &stands.Spec
	if s.HolderIdentity != nil && *s.HolderIdentity != "" && *s.HolderIdentity != upstream &&
		time.Now().Before(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds)*time.Second)) {
		return fmt.Errorf("held by %s", *s.HolderIdentity)
	}
	now := metav1.NowMicro()
	s.HolderIdentity, s.AcquireTime, s.RenewTime = new(upstream), &now, &now
	_, err = l.api.Update(l.Context(), stands, metav1.UpdateOptions{})
	return err
}

func (l *leaseEnv) upstreamRelease() {
	l.Helper()
	stands := l.get()
	stands.Spec.HolderIdentity = new("")
	if stands.Annotations == nil {
		stands.Annotations = map[string]string{}
	}
	stands.Annotations[previousNote] = upstream
	if _, err := l.api.Update(l.Context(), stands, metav1.UpdateOptions{}); err != nil {
		l.Fatal(err)
	}
}

func (l *leaseEnv) change(fn func(*coordinationv1.Lease)) {
	l.Helper()
	stands := l.get()
	fn(stands)
	if _, err := l.api.Update(l.Context(), stands, metav1.UpdateOptions{}); err != nil {
		l.Fatal(err)
	}
}

// countingHolder is a holder that counts its API requests.
type countingHolder struct {
	*k8s.ResourceLease
	requests atomic.Int64
	before   func(method string)
}

type transport struct {
	c  *countingHolder
	to http.RoundTripper
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.c.requests.Add(1)
	if t.c.before != nil {
		t.c.before(req.Method)
	}
	return t.to.RoundTrip(req)
}

func newResourceLease(t *testing.T, cfg *rest.Config) *countingHolder {
	t.Helper()
	return newResourceLeaseIn(t, cfg, nil)
}

func newLeaderFence(transitions int) *leader.Fence {
	f := leader.NewFence(time.Hour, func() time.Duration { return 0 })
	f.RecordRenew(leader.Epoch{Lease: "weir-system/weir-controller", TransitionCount: transitions}, 0)
	return f
}

func newResourceLeaseIn(t *testing.T, cfg *rest.Config, fence *leader.Fence) *countingHolder {
	t.Helper()
	c := &countingHolder{}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(to http.RoundTripper) http.RoundTripper { return transport{c, to} })
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	if c.ResourceLease, err = k8s.NewResourceLease(cfg, client, fence); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *countingHolder) checkRequests(t *testing.T, about string, want int64) {
	t.Helper()
	if got := c.requests.Swap(0); got != want {
		t.Errorf("%s cost %d requests, want %d", about, got, want)
	}
}

func (l *leaseEnv) requireNoError(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *leaseEnv) requireHeld(err error, holder string) {
	l.Helper()
	held, ok := errors.AsType[*leader.HolderError](err)
	if !ok || held.Holder != holder || held.Lease != "kube-system/"+lockerName {
		l.Errorf("got %v, want that %s holds it", err, holder)
	}
}
