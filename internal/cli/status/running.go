// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
)

// Causes outside of any Service or BackendPool.
const (
	// NoLeader means that no replica leads, or that none can start.
	NoLeader = "NoLeader"
	// TwoLeaders means that two Weirs write at once, each with its own Lease.
	TwoLeaders = "TwoLeaders"
)

// Causes for Services that Weir has not begun to serve.
const (
	// NotServed means that the class is Weir's.
	NotServed = "NotServed"
	// NoController means that the class is not Weir's, and that no other controller serves it.
	NoController = "NoController"
	// NoAddress means that Weir has begun long ago.
	NoAddress = "NoAddress"
	// ProvisionFailed means that a Provision has used up its attempts.
	ProvisionFailed = "ProvisionFailed"
	// ProvisionNotAccepted means that no attempt of a Provision begins.
	ProvisionNotAccepted = "ProvisionNotAccepted"
)

// servingDelay is the time within which Weir sets a condition on a new Service.
const servingDelay = 30 * time.Second

// ServedClass returns the spec.loadBalancerClass that Weir serves: the leader's, else that of the Deployment; empty means
// Services without one. known is false if neither is seen; then it is the default.
func ServedClass(l Leader, i Installation) (class string, known bool) {
	if l.Class != nil && (l.Holder != "" || i.Deployment == nil) {
		return *l.Class, true
	}
	return i.Class(), i.Deployment != nil
}

// ServedText describes which class Weir serves.
func ServedText(l Leader, i Installation) string {
	class, known := ServedClass(l, i)
	switch {
	case known:
		return "This Weir serves " + classText(class)
	case l.Holder == "" && l.Known && i.Known:
		return "No Weir is seen in this cluster, and by default it serves " + classText(class)
	}
	return "Which class Weir serves is not seen with your rights; by default it is " + class
}

// runningProblems returns what keeps Weir from running, or from running once.
func (s Snapshot) runningProblems() []Problem {
	if len(s.Leader.Rivals) > 0 {
		return []Problem{{
			Kind: "Lease", Namespace: s.Leader.Namespace, Name: LeaseName, State: TwoLeaders, cause: TwoLeaders,
			Why: TwoLeadersMessage(s.Leader), fix: TwoLeadersRemedy(s.Leader),
		}}
	}
	expected := s.Installation.Deployment != nil && s.Installation.ElectsLeader()
	if !s.Leader.Known && s.Installation.Deployment == nil || s.Leader.Holder != "" || !s.Leader.hasNoHolder() && !expected {
		return nil
	}
	p := Problem{Kind: "Lease", Namespace: s.Leader.Namespace, Name: LeaseName, State: NoLeader, cause: NoLeader, Since: s.Leader.Renewed, Why: s.Leader.noLeaderMessage()}
	if cause, ok := s.Installation.FirstFailure(); ok {
		p.Why, p.fix = p.Why+". The cause: "+cause.Why, cause.Fix
	} else if !s.Leader.hasNoHolder() {
		return nil // the pods are ready: one that leads may have no Lease
	}
	if p.Namespace == "" {
		p.Namespace = s.Installation.Deployment.Namespace
	}
	return []Problem{p}
}

// TwoLeadersMessage names the Leases that are held at once.
func TwoLeadersMessage(l Leader) string {
	text := fmt.Sprintf("two Weirs write at once: %s leads by Lease %s/%s", l.Holder, l.Namespace, LeaseName)
	for _, r := range l.Rivals {
		text += fmt.Sprintf(", and %s by Lease %s/%s", r.Holder, r.Namespace, LeaseName)
	}
	return text + ". Each may undo what the other writes"
}

// TwoLeadersRemedy describes how one of them is stopped.
func TwoLeadersRemedy(l Leader) string {
	return fmt.Sprintf("keep one, and stop the other: kubectl -n %s scale deployment weir-controller --replicas=0, or end the process %s if it runs outside of the cluster",
		l.Rivals[0].Namespace, l.Rivals[0].Holder)
}

// UnservedProblem returns why no controller serves a Service of type LoadBalancer; false if one does, or may not have
// seen it yet.
func (s Snapshot) UnservedProblem(svc *corev1.Service) (Problem, bool) {
	if !s.isUnserved(svc) {
		return Problem{}, false
	}
	p := Problem{Kind: "Service", Namespace: svc.Namespace, Name: svc.Name, Since: svc.CreationTimestamp.Time}
	class := ptr.Deref(svc.Spec.LoadBalancerClass, "")
	served, _ := ServedClass(s.Leader, s.Installation)
	if class == served {
		p.State, p.cause = NotServed, NotServed
		p.Why = fmt.Sprintf("Weir has not begun with this Service. %s", ServedText(s.Leader, s.Installation))
		return p, true
	}
	p.State, p.cause = NoController, NoController
	p.Why = fmt.Sprintf("no controller has begun to serve %s: the Service has no address, and no condition or finalizer of a controller. %s", classText(class), ServedText(s.Leader, s.Installation))
	p.fix = classRemedy(served)
	return p, true
}

func (s Snapshot) isUnserved(svc *corev1.Service) bool {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || svc.DeletionTimestamp != nil || len(svc.Status.LoadBalancer.Ingress) > 0 || s.At.Sub(svc.CreationTimestamp.Time) < servingDelay {
		return false
	}
	for _, c := range svc.Status.Conditions {
		if strings.HasPrefix(c.Type, "weir.dev/") {
			return false
		}
	}
	for _, f := range svc.Finalizers {
		if f == metadata.CleanupFinalizer { // another service controller has begun
			return false
		}
	}
	for i := range s.Pools {
		ref := s.Pools[i].Spec.ServiceRef
		if ref != nil && ref.Name == svc.Name && s.Pools[i].Namespace == svc.Namespace && !cache.HasFinalizer(svc) { // its load balancer is made by others
			return false
		}
	}
	return true
}

func classText(class string) string {
	if class == "" {
		return "Services without spec.loadBalancerClass"
	}
	return fmt.Sprintf("spec.loadBalancerClass %q", class)
}

// classRemedy describes how a Service gets the class that Weir serves. The API server changes a class only with the type.
func classRemedy(served string) string {
	class := ""
	if served != "" {
		class = fmt.Sprintf(`,"loadBalancerClass":%q`, served)
	}
	return `if Weir should serve it, set that class. The API server allows this only together with a change of the type: ` +
		`kubectl -n NAMESPACE patch service NAME --type merge -p '{"spec":{"type":"NodePort"}}', then ` +
		`kubectl -n NAMESPACE patch service NAME --type merge -p '{"spec":{"type":"LoadBalancer"` + class + `}}'. Otherwise see why the controller of its class does not run`
}

// NewLeader returns the leader that a Lease names.
func NewLeader(l k8s.LeaderStatus) Leader {
	leader := Leader{Known: true, Holder: l.Holder, Last: l.PreviousHolder, Renewed: l.RenewTime, Namespace: l.Namespace, Version: l.Version, Class: l.Class}
	for _, r := range l.Rivals {
		leader.Rivals = append(leader.Rivals, NewLeader(r))
	}
	return leader
}
