// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/lab/armemu"
)

type backendPools = v1alpha1.BackendPoolList

func inNamespace(ns string) client.ListOption   { return client.InNamespace(ns) }
func matching(set labels.Set) client.ListOption { return client.MatchingLabels(set) }

const prefix = "service.beta.kubernetes.io/"

func annotated(name, value string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Annotations[prefix+name] = value }
}

// A Service gets a finalizer, a record and a load balancer, and is released when nothing is left in
// Azure.
func TestAServiceIsServed(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web")
	svc := s.waitForAddresses("web", 1)
	if svc.Annotations[metadata.PlaceAnnotation] != "kubernetes" || len(svc.Finalizers) != 1 || svc.Finalizers[0] != metadata.ServiceFinalizer {
		t.Errorf("recorded: %v %v", svc.Annotations, svc.Finalizers)
	}
	if got, want := s.managedPools(), "web.kubernetes (kubernetes "+s.ns+"-web IPv4)"; got != want {
		t.Errorf("BackendPools %s, want %s", got, want)
	}
	pool := get[v1alpha1.BackendPool](s, s.ns, "web.kubernetes")
	if !metav1.IsControlledBy(pool, svc) {
		t.Errorf("owners of the BackendPool: %v", pool.OwnerReferences)
	}
	s.waitForEvent("Service", "web", services.EventEnsuring, 1)
	s.waitForEvent("Service", "web", services.EventEnsured, 1)

	// A cleared status is restored without a request to Azure.
	if err := api.Status().Patch(t.Context(), svc, client.RawPatch(types.MergePatchType, []byte(`{"status":{"loadBalancer":{"ingress":null}}}`))); err != nil {
		t.Fatal(err)
	}
	s.waitForAddresses("web", 1)
	s.waitForRequests("web", 1)

	s.waitForReason("web.kubernetes", v1alpha1.ReasonInSync, "")
	before := len(cloud.Calls(ofPool(s.ns + "-web")))
	deployer.setResult(s.ns+"/web", func(req loadbalancer.Request) loadbalancer.Result {
		r := deployer.successResult(req)
		for _, name := range req.DedicatedPools {
			r.MissingPools = append(r.MissingPools, lb.PoolID{LoadBalancer: req.RemoveFrom[0], Name: name})
		}
		return r
	})
	s.delete(&corev1.Service{}, "web")
	s.waitUntil(func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(svc), &corev1.Service{}); !apierrors.IsNotFound(err) {
			return "the Service is still there"
		}
		return ""
	})
	if last := s.waitForRequests("web", 2)[1]; last.Desired != nil || len(last.RemoveFrom) != 1 || last.RemoveFrom[0].Name != "kubernetes" {
		t.Errorf("the last request: %+v", last)
	}
	s.waitForEvent("Service", "web", services.EventDeleting, 1)
	s.waitForEvent("Service", "web", services.EventDeleted, 1)
	s.waitUntil(s.checkNoManagedPools)
	// The pool was deleted with its rules: it is not looked up and no error is reported.
	if after := len(cloud.Calls(ofPool(s.ns + "-web"))); after != before {
		t.Errorf("%d calls for a pool that is gone", after-before)
	}
	if output := s.countEvents("BackendPool", "web.kubernetes"); output[v1alpha1.ReasonServiceNotFound]+output[v1alpha1.ReasonLeaving] > 0 {
		t.Errorf("complaints: %v", output)
	}
}

func ofPool(name string) func(armemu.Call) bool {
	return func(c armemu.Call) bool { return strings.HasSuffix(strings.ToLower(c.Path), "/"+strings.ToLower(name)) }
}

func (env *testEnv) checkNoManagedPools() string {
	if remaining := env.managedPools(); remaining != "" {
		return "left: " + remaining
	}
	return ""
}

// A Service of another type gives up its load balancer.
func TestAServiceThatNeedsNoLoadBalancerAnyMore(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	s.editService("web", func(svc *corev1.Service) {
		svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
		svc.Spec.ExternalTrafficPolicy, svc.Spec.AllocateLoadBalancerNodePorts, svc.Spec.HealthCheckNodePort = "", nil, 0
	})
	s.waitUntil(func() string {
		svc := get[corev1.Service](s, s.ns, "web")
		if len(svc.Finalizers) > 0 || svc.Annotations[metadata.PlaceAnnotation] != "" || len(svc.Status.LoadBalancer.Ingress) > 0 {
			return "still served"
		}
		return s.checkNoManagedPools()
	})
	s.waitForEvent("Service", "web", services.EventDeleted, 1)
}

// Resources kept because of foreign members are reported once, even if the rest failed.
func TestRetainedForeignPoolIsReported(t *testing.T) {
	s := newTestEnv(t)
	kept := func(req loadbalancer.Request, of string, err error) loadbalancer.Result {
		r := deployer.successResult(req)
		r.Err = err
		pool := lb.PoolID{LoadBalancer: deployer.ID("kubernetes"), Name: of}
		r.Retained = []plan.RetainedPart{{Pool: pool, Owner: req.Owner, Members: []string{"192.0.2.7"}}}
		return r
	}
	tries := 0
	deployer.setResult(s.ns+"/web", func(req loadbalancer.Request) loadbalancer.Result {
		if tries++; tries < 3 {
			return kept(req, "one", &armerror.Fault{Class: armerror.Terminal, Code: "Nope", Err: errors.New("nope")})
		}
		return kept(req, "one", nil)
	})
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	s.waitForEvent("Service", "web", services.EventEnsured, 1)
	s.waitForEvent("Service", "web", services.EventPoolRetained, 1)
	deployer.setResult(s.ns+"/web", func(req loadbalancer.Request) loadbalancer.Result { return kept(req, "another", nil) })
	if err := api.Delete(t.Context(), get[corev1.Service](s, s.ns, "web")); err != nil {
		t.Fatal(err)
	}
	s.waitForEvent("Service", "web", services.EventDeleted, 1)
	s.waitForEvent("Service", "web", services.EventPoolRetained, 2)
	// A BackendPool deleted after its Service does not cause another request.
	s.waitUntil(s.checkNoManagedPools)
	stays := func(r loadbalancer.Request) bool { return r.Desired != nil }
	if leaving := slices.DeleteFunc(deployer.requests(s.ns+"/web"), stays); len(leaving) != 1 {
		t.Errorf("%d requests to leave, want 1", len(leaving))
	}
}

func TestServicesOfOtherClassesAreIgnored(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("other", func(svc *corev1.Service) { svc.Spec.LoadBalancerClass = new("example.com/lb") })
	s.createLoadBalanced("none", func(svc *corev1.Service) { svc.Spec.LoadBalancerClass = nil })
	s.createLoadBalanced("ours")
	s.waitForAddresses("ours", 1)
	for _, name := range []string{"other", "none"} {
		s.waitForRequests(name, 0)
		if svc := get[corev1.Service](s, s.ns, name); len(svc.Finalizers) > 0 {
			t.Errorf("%s: %v", name, svc.Finalizers)
		}
	}
}

// An invalid value is reported once and sends nothing to Azure until it is fixed.
func TestInvalidAnnotationIsReportedOnce(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web", annotated("azure-load-balancer-tcp-idle-timeout", "400"))
	s.waitForEvent("Service", "web", services.EventSyncFailed, 1)
	output := s.messages("Service", "web", services.EventSyncFailed)[0]
	for _, part := range []string{"azure-load-balancer-tcp-idle-timeout", `"400"`, "from 4 to 100"} {
		if !strings.Contains(output, part) {
			t.Errorf("%q does not say %q", output, part)
		}
	}
	s.editService("web", func(svc *corev1.Service) { svc.Labels = map[string]string{"a": "b"} })
	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "500"))
	s.waitForEvent("Service", "web", services.EventSyncFailed, 2)
	s.waitForRequests("web", 0)
	if svc := get[corev1.Service](s, s.ns, "web"); len(svc.Finalizers) > 0 {
		t.Error("a Service without a load balancer is held")
	}
	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "30"))
	s.waitForAddresses("web", 1)
	s.waitForEvent("Service", "web", services.EventEnsured, 1)
}

// A Service that becomes invalid keeps what it has and can still be deleted.
func TestInvalidAnnotationBlocksNoOtherService(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	s.editService("web", annotated("azure-load-balancer-internal", "perhaps"))
	s.waitForEvent("Service", "web", services.EventSyncFailed, 1)
	s.waitForAddresses("web", 1)
	s.waitForRequests("web", 1)
	s.waitForClosing("web")
	s.delete(&corev1.Service{}, "web")
	if last := s.waitForRequests("web", 2)[1]; last.Desired != nil {
		t.Error("asked for more")
	}
}

// An error of Azure is reported with its code and retried by the work queue.
func TestFailureIsReportedAndRetried(t *testing.T) {
	s := newTestEnv(t)
	fails := 2
	deployer.setResult(s.ns+"/web", func(req loadbalancer.Request) loadbalancer.Result {
		if fails == 0 {
			return deployer.successResult(req)
		}
		fails--
		return loadbalancer.Result{Request: req, Err: &armerror.Fault{Class: armerror.Terminal, Code: "SubnetIsFull", Err: errors.New("no\naddress is left")}}
	})
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	s.waitForEvent("Service", "web", services.EventSyncFailed, 2)
	if output := s.messages("Service", "web", services.EventSyncFailed)[0]; !strings.Contains(output, "SubnetIsFull") || strings.Contains(output, "\n") {
		t.Errorf("said %q", output)
	}
	s.waitForEvent("Service", "web", services.EventEnsuring, 1)
	s.waitForEvent("Service", "web", services.EventEnsured, 1)
}

// Retry-After holds, whatever happens to the Service.
func TestAnEventDoesNotEndARetryAfter(t *testing.T) {
	s := newTestEnv(t)
	until := time.Now().Add(retryAfter)
	deployer.setResult(s.ns+"/web", func(req loadbalancer.Request) loadbalancer.Result {
		if time.Now().Before(until) {
			return loadbalancer.Result{Request: req, Err: &armerror.Fault{Class: armerror.Retriable, Code: "SubscriptionRequestsThrottled", RetryAt: until, Err: errors.New("slow down")}}
		}
		return deployer.successResult(req)
	})
	s.createLoadBalanced("web")
	s.waitForRequests("web", 1)
	for _, minutes := range []string{"5", "6", "7"} {
		s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", minutes))
	}
	isInTime := time.Until(until) > retryAfter/3 // a busy machine may send the second request between edits
	s.waitForAddresses("web", 1)
	if time.Now().Before(until) {
		t.Error("asked before Azure wanted to be asked")
	}
	if requests := s.waitForRequests("web", 2); isInTime && requests[1].Desired.Rules[0].IdleMinutes != 7 {
		t.Errorf("asked for %d minutes, want the newest", requests[1].Desired.Rules[0].IdleMinutes)
	}
}

// A Service that becomes internal moves to the internal load balancer; both are recorded until it
// has moved.
func TestAServiceMoves(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	var during string
	t.Cleanup(func() { deployer.setResult(s.ns+"/web", nil) })
	deployer.setResult(s.ns+"/web", func(req loadbalancer.Request) loadbalancer.Result {
		during = get[corev1.Service](s, s.ns, "web").Annotations[metadata.PlaceAnnotation]
		return deployer.successResult(req)
	})
	s.editService("web", annotated("azure-load-balancer-internal", "true"))
	s.waitUntil(func() string {
		if got := get[corev1.Service](s, s.ns, "web").Annotations[metadata.PlaceAnnotation]; got != "kubernetes-internal" {
			return "recorded " + got
		}
		return ""
	})
	s.waitForClosing("web")
	if last := s.waitForRequests("web", 2)[1]; last.On.Name != "kubernetes-internal" || len(last.RemoveFrom) != 1 || last.RemoveFrom[0].Name != "kubernetes" {
		t.Errorf("asked %+v", last)
	}
	if during != "kubernetes-internal,kubernetes" {
		t.Errorf("on record meanwhile: %s", during)
	}
	s.waitUntil(func() string {
		if got, want := s.managedPools(), "web.kubernetes-internal (kubernetes-internal "+s.ns+"-web IPv4)"; got != want {
			return "BackendPools " + got + ", want " + want
		}
		return ""
	})
}

// The pools follow the traffic policy, and a deleted BackendPool is recreated.
func TestThePoolsOfAService(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web", func(svc *corev1.Service) {
		svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
	})
	s.waitForAddresses("web", len(get[corev1.Service](s, s.ns, "web").Spec.IPFamilies))
	made := s.managedPools()
	if first := s.waitForRequests("web", 1)[0]; len(first.RecordedPools) > 0 {
		t.Errorf("on record before there is a BackendPool: %v", first.RecordedPools)
	}
	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "30"))
	if next := s.waitForRequests("web", 2)[1]; len(next.RecordedPools) == 0 || next.RecordedPools[0].Name != s.ns+"-web" {
		t.Errorf("pools on record: %v", next.RecordedPools)
	}
	s.delete(&v1alpha1.BackendPool{}, "web.kubernetes")
	s.waitForRequests("web", 3)
	s.waitUntil(func() string {
		if got := s.managedPools(); got != made {
			return "BackendPools " + got + ", want " + made
		}
		return ""
	})
	s.editService("web", func(svc *corev1.Service) {
		svc.Spec.ExternalTrafficPolicy, svc.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyCluster, 0
	})
	s.waitUntil(s.checkNoManagedPools)
	if nodes := get[v1alpha1.BackendPool](s, "default", "nodes.kubernetes"); nodes.Spec.PoolName != "kubernetes" || nodes.Spec.Nodes == nil {
		t.Errorf("the pool of all nodes: %+v", nodes.Spec)
	}
}

// The resource group of a public IP is recorded until nothing can be left there.
func TestThePublicIPOfAnotherResourceGroupIsOnRecord(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web", annotated("azure-load-balancer-resource-group", "addresses"))
	svc := s.waitForAddresses("web", 1)
	if got := svc.Annotations[metadata.GroupsAnnotation]; got != "addresses" {
		t.Errorf("on record: %q", got)
	}
	s.editService("web", annotated("azure-load-balancer-resource-group", "others"))
	if requests := s.waitForRequests("web", 2); strings.Join(requests[1].Groups, " ") != "addresses others" {
		t.Errorf("asked for the groups %v", requests[1].Groups)
	}
	s.waitUntil(func() string {
		if got := get[corev1.Service](s, s.ns, "web").Annotations[metadata.GroupsAnnotation]; got != "others" {
			return "on record: " + got
		}
		return ""
	})
	s.delete(&corev1.Service{}, "web")
	if requests := s.waitForRequests("web", 3); strings.Join(requests[2].Groups, " ") != "others" {
		t.Errorf("asked for the groups %v at the end", requests[2].Groups)
	}
}

// An unreadable resource group is reported and does not block the Service.
func TestAMistypedResourceGroupHoldsNothing(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web", annotated("azure-load-balancer-resource-group", "mistyped"))
	s.waitUntil(func() string {
		for _, output := range s.messages("Service", "web", services.EventSyncFailed) {
			if strings.Contains(output, "AuthorizationFailed") {
				return ""
			}
		}
		return "nothing is said"
	})
	if svc := get[corev1.Service](s, s.ns, "web"); len(svc.Finalizers) > 0 || svc.Annotations[metadata.GroupsAnnotation] != "" {
		t.Errorf("held by %v %v", svc.Finalizers, svc.Annotations)
	}
	s.editService("web", annotated("azure-load-balancer-resource-group", ""))
	s.waitForAddresses("web", 1)
}

func TestForeignFinalizerIsRetained(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web", func(svc *corev1.Service) { svc.Finalizers = []string{"example.com/other", metadata.CleanupFinalizer} })
	s.waitForAddresses("web", 1)
	s.delete(&corev1.Service{}, "web")
	s.waitUntil(func() string {
		if got := get[corev1.Service](s, s.ns, "web").Finalizers; len(got) != 2 || got[0] != "example.com/other" || got[1] != metadata.CleanupFinalizer {
			return "finalizers " + strings.Join(got, " ")
		}
		return ""
	})
	s.waitForRequests("web", 2)
	s.editService("web", func(svc *corev1.Service) { svc.Finalizers = nil })
}

// Weir's finalizer protects a Service until nothing is left: it is restored if removed.
func TestRemovedFinalizerIsRestored(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	s.editService("web", func(svc *corev1.Service) { svc.Finalizers = nil })
	s.waitUntil(func() string {
		if got := get[corev1.Service](s, s.ns, "web").Finalizers; len(got) != 1 {
			return "finalizers " + strings.Join(got, " ")
		}
		return ""
	})
}

// A misspelled annotation has no effect and is reported once.
func TestAnAnnotationWithoutEffectIsNamedOnce(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web", annotated("azure-load-balancer-intenal", "true"), annotated("azure-pip-xname", "x"))
	s.waitForAddresses("web", 1)
	s.waitForEvent("Service", "web", services.EventUnknownAnnotation, 1)
	output := s.messages("Service", "web", services.EventUnknownAnnotation)[0]
	if !strings.Contains(output, prefix+"azure-load-balancer-intenal, "+prefix+"azure-pip-xname") {
		t.Errorf("said %q", output)
	}
	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "30"))
	s.waitForRequests("web", 2)
	s.waitForEvent("Service", "web", services.EventUnknownAnnotation, 1)
}

// Nothing is deleted for a Service that never had a load balancer.
func TestNothingIsDeletedOfAServiceThatHadNothing(t *testing.T) {
	s := newTestEnv(t)
	deployer.setResult(s.ns+"/web", func(req loadbalancer.Request) loadbalancer.Result {
		r := loadbalancer.Result{Request: req}
		if req.Desired != nil {
			r.Err = errors.New("the address is shared, and the port is taken")
		}
		return r
	})
	s.createLoadBalanced("web")
	s.waitUntil(func() string {
		if s.countEvents("Service", "web")[services.EventSyncFailed] == 0 {
			return "no complaint"
		}
		return ""
	})
	s.delete(&corev1.Service{}, "web")
	s.waitUntil(func() string {
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "web"}, &corev1.Service{}); !apierrors.IsNotFound(err) {
			return "the Service is still there"
		}
		return ""
	})
	s.createLoadBalanced("later") // its events follow those of the other
	s.waitForAddresses("later", 1)
	s.waitForEvent("Service", "later", services.EventEnsured, 1)
	if output := s.countEvents("Service", "web"); output[services.EventDeleting]+output[services.EventDeleted] > 0 {
		t.Errorf("said %v", output)
	}
}
