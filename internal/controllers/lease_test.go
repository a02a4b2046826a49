// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/leader"
)

const (
	upstream             = "cloud-controller-manager"
	managedLoadBalancers = "weir-controller"
	lockerName           = "aks-managed-resource-locker"
	previousNote         = "aks-managed-resource-locker-previous-holder"
)

// Without other writers, a pass costs two requests, acquire and release, and a rejection one.
func TestRequestsOfTheLease(t *testing.T) {
	l := newLeaseEnv(t)
	weir := newResourceLease(t, cluster.Config)
	l.requireNoError(weir.Acquire(t.Context()))
	weir.checkRequests(t, "the first acquisition: reading and creating", 2)
	made := l.get()
	l.requireNoError(weir.Acquire(t.Context()))
	weir.checkRequests(t, "a renewal", 1)
	stands := l.get()
	if l.holder() != managedLoadBalancers || *stands.Spec.HolderIdentity == managedLoadBalancers || *stands.Spec.LeaseDurationSeconds != 900 || stands.Annotations[previousNote] != managedLoadBalancers {
		t.Errorf("the Lease: %+v %v", stands.Spec, stands.Annotations)
	}
	if !stands.Spec.AcquireTime.Equal(made.Spec.AcquireTime) || !stands.Spec.RenewTime.After(made.Spec.RenewTime.Time) {
		t.Errorf("renewed: %v, %v; made: %v, %v", stands.Spec.AcquireTime, stands.Spec.RenewTime, made.Spec.AcquireTime, made.Spec.RenewTime)
	}
	l.requireNoError(weir.Release(t.Context()))
	weir.checkRequests(t, "a release", 1)
	if l.holder() != "" || l.get().Annotations[previousNote] != managedLoadBalancers {
		t.Errorf("released: %+v %v", l.get().Spec, l.get().Annotations)
	}
	for range 10 {
		l.requireNoError(weir.Acquire(t.Context()))
		l.requireNoError(weir.Release(t.Context()))
	}
	weir.checkRequests(t, "ten passes", 20)

	l.requireNoError(l.upstreamAcquire())
	l.requireHeld(weir.Acquire(t.Context()), upstream)
	weir.checkRequests(t, "finding out that another client took it: a write that conflicts and a read", 2)
	l.requireHeld(weir.Acquire(t.Context()), upstream)
	weir.checkRequests(t, "a refusal", 1)
	l.requireNoError(weir.Release(t.Context()))
	if l.holder() != upstream {
		t.Error("released what is another's")
	}
	l.upstreamRelease()
	l.requireNoError(weir.Acquire(t.Context()))
	if err := l.upstreamAcquire(); err == nil {
		t.Error("upstream takes what is ours")
	}
}

func TestLeaseHolders(t *testing.T) {
	l := newLeaseEnv(t)
	for _, tt := range []struct {
		name   string
		change func(s *coordinationv1.LeaseSpec)
		free   bool
	}{
		{"held", func(*coordinationv1.LeaseSpec) {}, false},
		{"no holder", func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = nil }, true},
		{"an empty holder", func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = new("") }, true},
		{"of another replica, without an election", func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = new(managedLoadBalancers + "_1") }, false},
		{"expired", func(s *coordinationv1.LeaseSpec) { s.RenewTime = ago(901*time.Second + 30*time.Second) }, true},
		{"expired by less than clocks may differ", func(s *coordinationv1.LeaseSpec) { s.RenewTime = ago(910 * time.Second) }, false},
		{"about to expire", func(s *coordinationv1.LeaseSpec) { s.RenewTime = ago(899 * time.Second) }, false},
		{"a short term that is over", func(s *coordinationv1.LeaseSpec) {
			s.RenewTime, s.LeaseDurationSeconds = ago(time.Minute), new(int32(15))
		}, true},
		{"never renewed", func(s *coordinationv1.LeaseSpec) { s.RenewTime = nil }, true},
		{"a clock that is far ahead", func(s *coordinationv1.LeaseSpec) { s.RenewTime = ago(-24 * time.Hour) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.remove()
			l.requireNoError(l.upstreamAcquire())
			l.change(func(stands *coordinationv1.Lease) { tt.change(&stands.Spec) })
			err := newResourceLease(t, cluster.Config).Acquire(t.Context())
			if (err == nil) != tt.free {
				t.Errorf("got %v, want it free: %v", err, tt.free)
			}
			if tt.free && l.holder() != managedLoadBalancers {
				t.Errorf("held by %q", l.holder())
			}
		})
	}
}

func ago(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(time.Now().Add(-d))) }

// After a concurrent write, the newest state decides.
func TestConcurrentWriteIsReadFirst(t *testing.T) {
	l := newLeaseEnv(t)
	weir := newResourceLease(t, cluster.Config)
	once := func(method string, do func()) {
		var only sync.Once
		weir.before = func(m string) {
			if m == method {
				only.Do(do)
			}
		}
	}
	once(http.MethodPost, func() { l.requireNoError(l.upstreamAcquire()) })
	l.requireHeld(weir.Acquire(t.Context()), upstream)
	l.upstreamRelease()
	once(http.MethodPut, func() { l.requireNoError(l.upstreamAcquire()) })
	l.requireHeld(weir.Acquire(t.Context()), upstream)
	if l.holder() != upstream {
		t.Error("our write won over a newer one")
	}
	l.upstreamRelease()
	note := func() {
		l.change(func(stands *coordinationv1.Lease) { stands.Labels = map[string]string{"who": "somebody"} })
	}
	once(http.MethodPut, note)
	l.requireNoError(weir.Acquire(t.Context())) // a label is not a holder
	once(http.MethodPut, note)
	l.change(func(stands *coordinationv1.Lease) { stands.Labels = nil })
	l.requireNoError(weir.Release(t.Context()))
	if l.holder() != "" {
		t.Error("not released, though nobody else holds it")
	}
	once(http.MethodPut, l.remove)
	l.requireNoError(weir.Acquire(t.Context())) // deleted: created again
	if l.holder() != managedLoadBalancers {
		t.Error("not held")
	}
}

// The next leader continues at once after a crash. A suspended former leader neither takes nor
// releases the new holder's Lease.
func TestTheNextLeaderGoesOn(t *testing.T) {
	l := newLeaseEnv(t)
	first, second := newResourceLeaseIn(t, cluster.Config, newLeaderFence(3)), newResourceLeaseIn(t, cluster.Config, newLeaderFence(4))
	l.requireNoError(first.Acquire(t.Context()))
	l.requireNoError(second.Acquire(t.Context()))
	if held, ok := errors.AsType[*leader.HolderError](first.Acquire(t.Context())); !ok || !strings.HasPrefix(held.Holder, managedLoadBalancers+"_") {
		t.Errorf("the leader before is not refused: %v", held)
	}
	l.requireNoError(first.Release(t.Context()))
	if l.holder() != managedLoadBalancers {
		t.Fatal("the leader before released what the next one holds")
	}
	l.requireNoError(second.Release(t.Context()))
	if l.holder() != "" {
		t.Error("not released")
	}
}

// The shipped roles allow what is needed, and no more.
func TestTheRolesOfTheLease(t *testing.T) {
	l := newLeaseEnv(t)
	as := rest.CopyConfig(cluster.Config)
	as.Impersonate.UserName = "system:serviceaccount:weir-system:weir"
	weir := newResourceLease(t, as)
	if err := weir.Acquire(t.Context()); !apierrors.IsForbidden(errors.Unwrap(err)) || !strings.Contains(err.Error(), "kube-system/"+lockerName) {
		t.Errorf("without the roles: %v", err)
	}
	l.applyRoles("../../config/resource-lease/role.yaml")
	until := time.Now().Add(2 * time.Minute)
	for weir.Acquire(t.Context()) != nil && time.Now().Before(until) { // roles take effect with a delay
		time.Sleep(20 * time.Millisecond)
	}
	l.requireNoError(weir.Acquire(t.Context()))
	l.requireNoError(weir.Release(t.Context()))

	api, err := typedcoordinationv1.NewForConfig(as)
	l.requireNoError(err)
	_, err = api.Leases("kube-system").Get(t.Context(), "kube-controller-manager", metav1.GetOptions{})
	_, list := api.Leases("kube-system").List(t.Context(), metav1.ListOptions{})
	gone := api.Leases("kube-system").Delete(t.Context(), lockerName, metav1.DeleteOptions{})
	for name, err := range map[string]error{"another Lease": err, "a list": list, "deletion": gone} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (l *leaseEnv) applyRoles(path string) {
	l.Helper()
	raw, err := os.ReadFile(filepath.FromSlash(path))
	l.requireNoError(err)
	parts := strings.Split(string(raw), "\n---\n")
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	l.requireNoError(yaml.UnmarshalStrict([]byte(parts[0]), role))
	l.requireNoError(yaml.UnmarshalStrict([]byte(parts[1]), binding))
	scheme := metadata.Scheme()
	l.requireNoError(rbacv1.AddToScheme(scheme))
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	l.requireNoError(err)
	l.requireNoError(admin.Create(l.Context(), role))
	l.requireNoError(admin.Create(l.Context(), binding))
	l.Cleanup(func() {
		l.requireNoError(admin.Delete(context.Background(), role))
		l.requireNoError(admin.Delete(context.Background(), binding))
	})
}
