// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

func (env *testEnv) tenant() client.Client {
	env.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.ns, Name: "backendpools"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"weir.dev"}, Resources: []string{"backendpools"}, Verbs: []string{"*"}}},
	}
	admin, err := client.New(cluster.Config, client.Options{})
	if err != nil {
		env.Fatal(err)
	}
	objects := []client.Object{role}
	// No controller aggregates roles in this test, so use the aggregated role directly.
	for kind, names := range map[string][]string{"ClusterRole": {"edit", "system:aggregate-to-edit"}, "Role": {role.Name}} {
		for _, name := range names {
			objects = append(objects, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: env.ns, Name: strings.ReplaceAll(name, ":", "-")},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: env.ns, Name: "tenant"}},
			})
		}
	}
	for _, obj := range objects {
		if err := admin.Create(env.Context(), obj); err != nil {
			env.Fatal(err)
		}
	}
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Impersonate.UserName = "system:serviceaccount:" + env.ns + ":tenant"
	tenant, err := client.New(cfg, client.Options{Scheme: metadata.Scheme()})
	if err != nil {
		env.Fatal(err)
	}
	return tenant
}

func (env *testEnv) setGrant(list string) {
	env.Helper()
	ns := &corev1.Namespace{}
	if err := api.Get(env.Context(), client.ObjectKey{Name: env.ns}, ns); err != nil {
		env.Fatal(err)
	}
	before := ns.DeepCopy()
	ns.Annotations = map[string]string{service.LoadBalancersAnnotation: list}
	if err := api.Patch(env.Context(), ns, client.MergeFrom(before)); err != nil {
		env.Fatal(err)
	}
}

func (env *testEnv) newForgedPool(name, service, on, pool string, uid types.UID) *v1alpha1.BackendPool {
	return &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: env.ns, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "weir"}, Finalizers: []string{v1alpha1.Finalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service, UID: uid, Controller: new(true)}},
		},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef: &v1alpha1.ServiceReference{Name: service}, IPFamily: string(lb.IPv4),
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: on}, PoolName: pool,
		},
		Status: v1alpha1.BackendPoolStatus{MadeFor: string(uid)},
	}
}

// A pool created by Terraform keeps foreign members, however a tenant labels, names and owns its
// BackendPool.
func TestAForgedBackendPoolDropsNoForeignAddresses(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	tenant := s.tenant()
	s.azurePool("web", "203.0.113.9")
	s.createNode(1)
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createSlice("web-1", "web", s.endpointOn(1))
	uid := get[corev1.Service](s, s.ns, "web").UID
	if err := tenant.Create(t.Context(), s.newForgedPool("web."+s.ns, "web", s.ns, "web", uid)); err != nil {
		t.Fatal(err)
	}
	s.waitUntil(func() string {
		if got := strings.Join(s.poolAddresses("web"), " "); got != s.ip(1)+" 203.0.113.9" {
			return "the pool holds " + got
		}
		return ""
	})
	p := get[v1alpha1.BackendPool](s, s.ns, "web."+s.ns)
	if p.Status.MadeFor != "" {
		t.Errorf("a status that somebody sent along is believed: made for %s", p.Status.MadeFor)
	}
	p.Status.MadeFor = string(uid)
	if err := tenant.Status().Update(t.Context(), p); !apierrors.IsForbidden(err) {
		t.Errorf("the tenant may write a status: %v", err)
	}
}

// A BackendPool with an owner that never existed, or of another cluster, affects no frontend, rule
// or public IP.
func TestUnknownOwnerLosesNothing(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	tenant := s.tenant()
	p := s.newForgedPool("lost.kubernetes", "lost", "kubernetes", s.ns+"-lost", uuid.NewUUID())
	if err := tenant.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.waitForReason(p.Name, v1alpha1.ReasonNotAllowed, service.LoadBalancersAnnotation)
	if err := tenant.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.waitForDeletion(p.Name)
	s.createLoadBalanced("later") // earlier requests are complete
	s.waitForAddresses("later", 1)
	s.waitForRequests("lost", 0)
}

// A namespace can bind what an administrator granted; without a grant nothing is read or written.
func TestANamespaceBindsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web")
	s.setGrant("others")
	s.createNode(1)
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createSlice("web-1", "web", s.endpointOn(1))
	s.createBackendPool("web", "web")
	s.waitForReason("web", v1alpha1.ReasonNotAllowed, service.LoadBalancersAnnotation+" of the Namespace, with "+subscription+"/rg/"+s.ns+" in its list")
	s.waitForEvent("BackendPool", "web", v1alpha1.ReasonNotAllowed, 1)
	if n := s.countCalls(); n != 0 {
		t.Errorf("%d calls for a pool that may not be bound", n)
	}
	s.setGrant("others, rg/" + s.ns)
	s.waitForMembers("web", s.ip(1))

	s.setGrant("")
	s.waitForReason("web", v1alpha1.ReasonNotAllowed, "the pool keeps its members")
	s.changeSlice("web-1")
	writes := s.countWrites()
	s.delete(&v1alpha1.BackendPool{}, "web")
	s.waitForDeletion("web")
	s.waitForEvent("BackendPool", "web", backendpool.EventLeftInPlace, 1)
	if got := strings.Join(s.poolAddresses("web"), " "); got != s.ip(1) || s.countWrites() != writes {
		t.Errorf("the pool holds %s after %d writes", got, s.countWrites()-writes)
	}
}

// A tenant that binds a Service's pool before the Service exists does not own it, with or without a
// grant: the Service does.
func TestAPoolOfTheClustersOwnIsNotSeized(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.setGrant("*")
	s.createBackendPool("squat", "none", func(p *v1alpha1.BackendPoolSpec) {
		p.LoadBalancer.Name, p.PoolName = "kubernetes", s.ns+"-web"
		p.ServiceRef, p.Nodes = nil, &v1alpha1.NodeMembers{}
	})
	s.createBackendPool("shared", "none", func(p *v1alpha1.BackendPoolSpec) {
		p.LoadBalancer.Name, p.PoolName = "kubernetes", "kubernetes"
		p.ServiceRef, p.Nodes = nil, &v1alpha1.NodeMembers{}
	})
	s.waitForReason("shared", v1alpha1.ReasonDuplicate, "that of all nodes")
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	s.waitForReason("squat", v1alpha1.ReasonDuplicate, "Service "+s.ns+"/web")
	s.waitUntil(func() string {
		if got := s.status("web.kubernetes").MadeFor; got != string(get[corev1.Service](s, s.ns, "web").UID) {
			return "made for " + got
		}
		if c := s.syncedCondition("web.kubernetes"); c.Reason == v1alpha1.ReasonDuplicate {
			return s.syncedMessage("web.kubernetes")
		}
		return ""
	})
}

// If the name of a Service's BackendPool is in use, the Service reports it, and works once the name
// is free.
func TestServiceReportsBackendPoolThatCannotBeCreated(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web")
	if err := api.Create(t.Context(), s.newForgedPool("web.kubernetes", "other", s.ns, "web", uuid.NewUUID())); err != nil {
		t.Fatal(err)
	}
	s.createLoadBalanced("web")
	s.waitUntil(func() string {
		for _, output := range s.messages("Service", "web", services.EventSyncFailed) {
			if strings.Contains(output, "BackendPool "+s.ns+"/web.kubernetes") && strings.Contains(output, "delete it") {
				return ""
			}
		}
		return "nothing is said"
	})
	if output := s.countEvents("Service", "web"); output[services.EventEnsured] > 0 {
		t.Errorf("said %v", output)
	}
	s.delete(&v1alpha1.BackendPool{}, "web.kubernetes")
	s.waitForEvent("Service", "web", services.EventEnsured, 1)
}

// A BackendPool of Weir that is copied and edited remains Weir's, and the copy has no rights.
func TestCopiedAndEditedBackendPools(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	tenant := s.tenant()
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	var p *v1alpha1.BackendPool
	s.waitUntil(func() string {
		if p = get[v1alpha1.BackendPool](s, s.ns, "web.kubernetes"); p.Status.MadeFor == "" {
			return "no record"
		}
		return ""
	})
	copied := p.DeepCopy()
	copied.ObjectMeta = metav1.ObjectMeta{Namespace: s.ns, Name: "copy", Labels: p.Labels, Finalizers: p.Finalizers, OwnerReferences: p.OwnerReferences}
	if err := tenant.Create(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	s.waitForReason("copy", v1alpha1.ReasonDuplicate, "web.kubernetes")
	edited := p.DeepCopy()
	edited.Labels = nil
	if err := tenant.Patch(t.Context(), edited, client.MergeFrom(p)); err != nil {
		t.Fatal(err)
	}
	if err := tenant.Delete(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	s.waitForDeletion("copy")
	// Still Weir's: it is deleted with its Service.
	s.delete(&corev1.Service{}, "web")
	s.waitForDeletion("web.kubernetes")
}
