// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/lab/armemu"
)

func TestForeignAddressesSurvive(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	foreign := s.ip(200)
	s.azurePool("web", foreign, s.ip(2)) // node 2 is already in the pool, under another name
	s.createNode(1)
	s.createNode(2)
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createSlice("a", "web", s.endpointOn(1))
	s.createBackendPool("web", "web")
	s.waitForMembers("web", s.ip(1), foreign) // node 2 is this cluster's, so its entry is managed

	st := s.status("web")
	if *st.Desired != 1 || *st.Observed != 2 || *st.Foreign != 1 || st.LastWrite == nil || st.LastOutcome.Class != "Written" {
		t.Errorf("status %+v", st)
	}
	s.delete(&v1alpha1.BackendPool{}, "web")
	s.waitForDeletion("web")
	if got := s.poolAddresses("web"); len(got) != 1 || got[0] != foreign {
		t.Errorf("after deletion the pool holds %v, want the foreign address alone", got)
	}
}

func TestNoChangeCausesNoEvent(t *testing.T) {
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1))
	s.waitForEvent("Service", "web", backendpool.EventUpdated, 1)
	calls, version := s.countCalls(armemu.KindGet, armemu.KindPut), get[v1alpha1.BackendPool](s, s.ns, "web").ResourceVersion

	s.changeSlice("a", s.endpointOn(1), s.endpointOn(1))
	node := get[corev1.Node](s, "", s.node(1))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	if err := api.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	change(s, "", s.node(1), func(n *corev1.Node) { n.Labels = map[string]string{"rack": "7"} })
	// A later change in the same queue has been processed.
	s.azurePool("fence")
	s.createService("fence", corev1.ServiceTypeNodePort)
	s.createBackendPool("fence", "fence")
	s.createSlice("fence", "fence", s.endpointOn(3))
	s.waitForMembers("fence", s.ip(3))
	own := func(c armemu.Call) bool { return strings.HasSuffix(c.Resource, s.ns+"/backendAddressPools/web") }
	if n := len(cloud.Calls(own, armemu.ByKind(armemu.KindGet, armemu.KindPut))); n != calls {
		t.Errorf("%d calls, want the %d from before", n, calls)
	}
	if current := get[v1alpha1.BackendPool](s, s.ns, "web").ResourceVersion; current != version {
		t.Errorf("the status was written though nothing changed: %s", s.syncedMessage("web"))
	}
	s.waitForEvent("Service", "web", backendpool.EventUpdated, 1)
}

func TestSecondBackendPoolOfOnePool(t *testing.T) {
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1))
	s.createService("rival", corev1.ServiceTypeLoadBalancer)
	s.createSlice("b", "rival", s.endpointOn(2))
	other := func(p *v1alpha1.BackendPoolSpec) {
		p.PoolName, p.LoadBalancer.Name = "WEB", strings.ToUpper(s.ns) // Azure names are case-insensitive
		p.LoadBalancer.SubscriptionID = subscription
	}
	s.createBackendPool("rival", "rival", other)
	s.waitForReason("rival", v1alpha1.ReasonDuplicate, "BackendPool "+s.ns+"/web already holds pool WEB of load balancer")
	s.waitForEvent("BackendPool", "rival", v1alpha1.ReasonDuplicate, 1)
	s.waitForMembers("web", s.ip(1))

	s.delete(&v1alpha1.BackendPool{}, "web")
	s.waitUntil(func() string {
		if got := s.poolAddresses("web"); fmt.Sprint(got) != fmt.Sprint([]string{s.ip(2)}) {
			return fmt.Sprintf("the pool holds %v; %s", got, s.syncedMessage("rival"))
		}
		return ""
	})
	s.waitForReason("rival", v1alpha1.ReasonInSync, "in sync with 1 node")

	s.createBackendPool("late", "web", other)
	s.waitForReason("late", v1alpha1.ReasonDuplicate, s.ns+"/rival")
	s.delete(&v1alpha1.BackendPool{}, "late") // deleting a duplicate writes nothing
	s.waitForDeletion("late")
	s.waitForReason("rival", v1alpha1.ReasonInSync, "in sync")
	if got := s.poolAddresses("web"); len(got) != 1 {
		t.Errorf("the pool holds %v", got)
	}
}

func TestPause(t *testing.T) {
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1))
	pause := func(on bool) {
		change(s, s.ns, "web", func(p *v1alpha1.BackendPool) { p.Spec.Paused = on })
	}
	pause(true)
	s.waitForReason("web", v1alpha1.ReasonPaused, "spec.paused is set")
	if !meta.IsStatusConditionTrue(s.status("web").Conditions, v1alpha1.ConditionPaused) {
		t.Error("no condition Paused")
	}
	writes := s.countWrites()
	s.changeSlice("a", s.endpointOn(2))
	s.azurePool("fence")
	s.createBackendPool("fence", "web")
	s.waitForMembers("fence", s.ip(2))
	if got := s.poolAddresses("web"); len(got) != 1 || got[0] != s.ip(1) || s.countWrites() != writes+1 {
		t.Errorf("a paused pool was written: %v", got)
	}
	pause(false)
	s.waitForMembers("web", s.ip(2))

	pause(true)
	s.waitForReason("web", v1alpha1.ReasonPaused, "")
	s.delete(&v1alpha1.BackendPool{}, "web")
	s.waitForDeletion("web")
	s.waitForEvent("BackendPool", "web", backendpool.EventLeftInPlace, 1)
	if got := s.poolAddresses("web"); len(got) != 1 {
		t.Errorf("deleted while paused: the pool holds %v, want it as it was", got)
	}
}

func TestServiceGoesAndComesBack(t *testing.T) {
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1))
	s.delete(&corev1.Service{}, "web") // its slice remains but no longer counts
	s.waitForReason("web", v1alpha1.ReasonServiceNotFound, "its addresses were removed")
	if got := s.poolAddresses("web"); len(got) != 0 {
		t.Errorf("the Service is gone and the pool holds %v", got)
	}
	writes := s.countWrites()
	s.changeSlice("a", s.endpointOn(2))
	s.createService("web", corev1.ServiceTypeNodePort)
	s.waitForMembers("web", s.ip(2))
	if n := s.countWrites() - writes; n != 1 {
		t.Errorf("%d writes, want one: while the Service was gone nothing was written", n)
	}
	change(s, s.ns, "web", func(svc *corev1.Service) {
		svc.Spec.Type, svc.Spec.Ports[0].NodePort = corev1.ServiceTypeClusterIP, 0
	})
	s.waitForReason("web", v1alpha1.ReasonServiceUnfit, "type ClusterIP")
	s.waitForReason("web", v1alpha1.ReasonServiceUnfit, "its addresses were removed")
	change(s, s.ns, "web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer })
	s.waitForMembers("web", s.ip(2))
}

func TestServiceThatNeverFilledThePool(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.azurePool("web", s.ip(1)) // a node of this cluster, but the pool was never taken
	s.azurePool("inner", s.ip(1))
	s.createBackendPool("web", "web")
	s.createService("inner", corev1.ServiceTypeClusterIP)
	s.createSlice("a", "inner", s.endpointOn(1))
	s.createBackendPool("inner", "inner")
	s.waitForReason("web", v1alpha1.ReasonServiceNotFound, "Service "+s.ns+"/web does not exist; Weir wrote nothing to the pool")
	s.waitForReason("inner", v1alpha1.ReasonServiceUnfit, "has type ClusterIP and so no node ports; it needs type LoadBalancer or NodePort; Weir wrote nothing")
	s.waitForEvent("BackendPool", "web", v1alpha1.ReasonServiceNotFound, 1)
	s.delete(&v1alpha1.BackendPool{}, "web")
	s.delete(&v1alpha1.BackendPool{}, "inner")
	s.waitForDeletion("web")
	s.waitForDeletion("inner")
	if n := s.countCalls(armemu.KindGet, armemu.KindPut); n != 0 {
		t.Errorf("%d calls to Azure, want none", n)
	}
}

func TestResourcesMissingInAzure(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createSlice("a", "web", s.endpointOn(1))
	s.createBackendPool("web", "web")
	s.createBackendPool("lost", "web", func(p *v1alpha1.BackendPoolSpec) { p.LoadBalancer.Name += "-none" })
	s.put(s.lbID()+"/backendAddressPools/nics", `{"name":"nics","properties":{"backendIPConfigurations":[{"id":"/nic/1"}]}}`)
	s.createBackendPool("nics", "web")
	s.waitForReason("web", v1alpha1.ReasonPoolNotFound, "load balancer "+s.ns+" in resource group rg has no backend pool web")
	s.waitForReason("lost", v1alpha1.ReasonLoadBalancerNotFound, "Azure has no load balancer "+s.ns+"-none in resource group rg")
	s.waitForReason("nics", v1alpha1.ReasonNICPool, "holds network interfaces, which Weir does not write")
	s.azurePool("web") // found although nothing changes in the cluster
	s.waitForMembers("web", s.ip(1))
	for name, reason := range map[string]string{"web": "PoolNotFound", "lost": "LoadBalancerNotFound", "nics": "NICPool"} {
		s.waitForEvent("BackendPool", name, reason, 1) // polled more often
	}
	if got := s.countEvents("Service", "web"); got[backendpool.EventFailed]+got[backendpool.EventRetrying] != 0 {
		t.Errorf("a pool that is missing is no event on the Service: %v", got)
	}
	// A taken pool deleted with its load balancer does not block the deletion of its BackendPool.
	s.put(s.lbID(), `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"fe"}],"backendAddressPools":[]}}`)
	for _, name := range []string{"web", "lost", "nics"} {
		s.delete(&v1alpha1.BackendPool{}, name)
		s.waitForDeletion(name)
	}
}

func TestRejectedWriteIsReportedOnService(t *testing.T) {
	s := newBoundEnv(t)
	s.azurePool("bad")
	s.createSlice("a", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1))
	s.createBackendPool("bad", "web")
	s.waitForMembers("bad", s.ip(1))
	s.setWriteResults("bad", refused)
	s.changeSlice("a", s.endpointOn(1), s.endpointOn(2))
	s.waitForReason("bad", v1alpha1.ReasonFailed, "InvalidRequestFormat")
	s.waitForEvent("Service", "web", backendpool.EventFailed, 1)
	s.waitForEvent("BackendPool", "bad", v1alpha1.ReasonFailed, 1)
	s.waitForMembers("web", s.ip(1), s.ip(2))
	if got := s.status("bad").LastOutcome; got.Class != "Terminal" || got.Code != "InvalidRequestFormat" {
		t.Errorf("last outcome %+v", got)
	}
	output := s.messages("Service", "web", backendpool.EventFailed)[0]
	if !strings.HasPrefix(output, "Backend pool update failed: ") ||
		!strings.HasSuffix(output, ". To retrigger, cause an endpoint change for the Service (e.g., restart or scale a backing pod).") {
		t.Errorf("event %q", output)
	}
	s.changeSlice("a", s.endpointOn(1), s.endpointOn(2), s.endpointOn(2)) // as the message advises
	s.waitForMembers("bad", s.ip(1), s.ip(2))
}

func TestThrottledPoolIsParked(t *testing.T) {
	s := newBoundEnv(t)
	s.azurePool("busy")
	s.setWriteResults("busy", throttled)
	s.createSlice("a", "web", s.endpointOn(1))
	s.createBackendPool("busy", "web")
	s.waitForReason("busy", v1alpha1.ReasonRetrying, "retry 1 of 1 follows at ")
	st := s.status("busy")
	if !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionParked) || st.NextEligibleAt == nil || *st.RetriesUsed != 1 || *st.RetryBudget != 1 {
		t.Errorf("status of a parked pool: %+v", st)
	}
	s.waitForMembers("busy", s.ip(1))
	s.waitForEvent("Service", "web", backendpool.EventRetrying, 1)
	s.waitForEvent("Service", "web", backendpool.EventUpdated, 2)
	st = s.status("busy")
	if !meta.IsStatusConditionFalse(st.Conditions, v1alpha1.ConditionParked) || st.NextEligibleAt != nil || *st.RetriesUsed != 0 {
		t.Errorf("status after the park: %+v", st)
	}
}

// A pool also waits while its load balancer is throttled, and its status gives the reason.
func TestPoolBehindClosedGateReportsIt(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web", "busy")
	for n := range 2 {
		s.createNode(n + 1)
	}
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createService("busy", corev1.ServiceTypeLoadBalancer)
	s.createSlice("a", "web", s.endpointOn(1))
	s.createBackendPool("web", "web")
	s.waitForMembers("web", s.ip(1))
	s.setWriteResults("busy", locked)
	s.createSlice("b", "busy", s.endpointOn(1))
	s.createBackendPool("busy", "busy")
	s.waitForReason("busy", v1alpha1.ReasonRetrying, "retry 1 of 1 follows at ")
	s.changeSlice("a", s.endpointOn(1), s.endpointOn(2))
	s.waitForReason("web", v1alpha1.ReasonUpdating, "a change waits: the load balancer is closed until ")
	st := s.status("web")
	parked := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionParked)
	if parked.Reason != v1alpha1.ReasonGateClosed || !strings.Contains(parked.Message, "RetryableErrorDueToAnotherOperation") ||
		st.NextEligibleAt == nil || *st.Desired != 2 || *st.Observed != 1 {
		t.Errorf("status of a pool that waits: %+v", st)
	}
	s.waitForMembers("web", s.ip(1), s.ip(2))
	s.waitForMembers("busy", s.ip(1))
	s.waitForReason("web", v1alpha1.ReasonInSync, "in sync with 2 nodes")
	st = s.status("web")
	if meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionParked) || st.NextEligibleAt != nil {
		t.Errorf("status after the wait: %+v", st)
	}
	s.waitForEvent("Service", "web", backendpool.EventRetrying, 0)
}

// A BackendPool is deleted after its addresses are removed.
func TestReleaseIsTriedAgain(t *testing.T) {
	s := newBoundEnv(t)
	s.azurePool("sticky")
	s.createSlice("a", "web", s.endpointOn(1))
	s.createBackendPool("sticky", "web")
	s.waitForMembers("sticky", s.ip(1))
	s.setWriteResults("sticky", refused, refused)
	s.delete(&v1alpha1.BackendPool{}, "sticky")
	s.waitForDeletion("sticky")
	if got := s.poolAddresses("sticky"); len(got) != 0 {
		t.Errorf("the BackendPool is gone and its pool holds %v", got)
	}
	if n := s.remainingResults("sticky"); n != 0 {
		t.Errorf("%d of two refusals were not met", n)
	}
}

func TestSpecThatNamesNoPool(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web")
	s.createNode(1)
	s.createBackendPool("web", "", func(p *v1alpha1.BackendPoolSpec) {
		p.ServiceRef = nil
		p.Nodes = &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Near"}}}}
	})
	s.waitForReason("web", v1alpha1.ReasonInvalid, "nodes.selector: ")
	change(s, s.ns, "web", func(p *v1alpha1.BackendPool) {
		p.Spec.Nodes.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/hostname": "none"}}
	})
	s.waitForReason("web", v1alpha1.ReasonInSync, "in sync with no nodes")
	change(s, s.ns, "web", func(p *v1alpha1.BackendPool) {
		p.Spec.Nodes.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Near"}}
	})
	s.waitForReason("web", v1alpha1.ReasonInvalid, "nodes.selector: ")
	s.delete(&v1alpha1.BackendPool{}, "web")
	s.waitForDeletion("web")
}

// Every failed attempt is a separate event.
func TestEventsAreNotAggregated(t *testing.T) {
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1))
	for i := range 30 {
		pool := fmt.Sprintf("refused-%d", i)
		s.azurePool(pool)
		s.setWriteResults(pool, refused)
		s.createBackendPool(pool, "web")
	}
	s.waitForEvent("Service", "web", backendpool.EventFailed, 30)
	for _, output := range s.messages("Service", "web", backendpool.EventFailed) {
		if strings.Contains(output, "combined from similar events") || strings.Contains(output, "\n") {
			t.Errorf("event %q", output)
		}
	}
}

func TestStatusMatchesAzure(t *testing.T) {
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1), s.endpointOn(2))
	s.waitForMembers("web", s.ip(1), s.ip(2))
	st := s.status("web")
	if want := s.lbID() + "/backendAddressPools/web"; st.PoolID != want {
		t.Errorf("poolID %s, want %s", st.PoolID, want)
	}
	if fmt.Sprint(st.WrittenAddresses) != fmt.Sprint([]string{s.ip(1), s.ip(2)}) {
		t.Errorf("written addresses %v", st.WrittenAddresses)
	}
	for _, kind := range []string{v1alpha1.ConditionParked, v1alpha1.ConditionPaused} {
		if !meta.IsStatusConditionFalse(st.Conditions, kind) {
			t.Errorf("condition %s: %+v", kind, st.Conditions)
		}
	}
	if age := time.Since(st.LastWrite.Time); age > time.Minute || age < -time.Minute {
		t.Errorf("last write %s ago", age)
	}
	raw, err := json.Marshal(get[v1alpha1.BackendPool](s, s.ns, "web").ManagedFields)
	if err != nil || !strings.Contains(string(raw), `"manager":"weir"`) {
		t.Errorf("nobody sees who wrote the status: %s", raw)
	}
}

// A status is never written to a recreated BackendPool and never creates one.
func TestStatusOfABackendPoolThatIsGone(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web")
	hold := func(p *v1alpha1.BackendPoolSpec) { p.Paused = true }
	s.createBackendPool("web", "none", hold)
	first := get[v1alpha1.BackendPool](s, s.ns, "web")
	ref := schedule.Ref{Namespace: s.ns, Name: "web", UID: string(first.UID)}
	status := &v1alpha1.BackendPoolStatus{PoolID: "x"}
	s.delete(&v1alpha1.BackendPool{}, "web")
	s.waitForDeletion("web")
	if err := applyStatus(t.Context(), api, ref, first.ResourceVersion, status); !errors.Is(err, metadata.ErrDeleted) {
		t.Errorf("no such object: %v", err)
	}
	s.createBackendPool("web", "none", hold)
	if err := applyStatus(t.Context(), api, ref, first.ResourceVersion, status); !errors.Is(err, metadata.ErrDeleted) {
		t.Errorf("another UID: %v", err)
	}
	if got := s.status("web").PoolID; got != "" {
		t.Errorf("it was written: %s", got)
	}
	bad := &v1alpha1.BackendPoolStatus{Conditions: []metav1.Condition{{Type: "Synced", Status: "Perhaps"}}}
	ref.UID = string(get[v1alpha1.BackendPool](s, s.ns, "web").UID)
	if err := applyStatus(t.Context(), api, ref, first.ResourceVersion, bad); err == nil || errors.Is(err, metadata.ErrDeleted) {
		t.Errorf("a status that the API does not take: %v", err)
	}
	if err := applyStatus(t.Context(), api, ref, first.ResourceVersion, status); err != nil {
		t.Errorf("the same object in a later version: %v", err)
	}
}

func applyStatus(ctx context.Context, to client.Client, ref schedule.Ref, version string, status *v1alpha1.BackendPoolStatus) error {
	_, _, err := backendpool.NewStatuses(backendpools.API{Reader: to, Status: to.Status(), Writer: to}).ApplyStatus(ctx, ref, version, status, nil)
	return err
}
