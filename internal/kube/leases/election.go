// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/lead"
)

// Provisioner is the Lease of the leader among the processes of weir-provisioner.
const Provisioner = "weir-provisioner"

// Election is the pace of the leader's election, as client-go names it.
type Election struct {
	// LeaseDuration is how long others wait after the leader's last renewal that they saw.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader writes after its last renewal. What it has begun
	// by then has the rest of LeaseDuration to arrive.
	RenewDeadline time.Duration
	// RetryPeriod is how often the Lease is renewed, and tried by others.
	RetryPeriod time.Duration
}

// DefaultElection is that of the controllers of Kubernetes.
func DefaultElection() Election {
	return Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
}

// Validate names the field that makes no election.
func (e Election) Validate() error {
	least := time.Duration(float64(e.RetryPeriod) * leaderelection.JitterFactor)
	switch {
	case e.RetryPeriod <= 0:
		return fmt.Errorf("retry-period %s: want more than 0", e.RetryPeriod)
	case e.RenewDeadline <= least:
		return fmt.Errorf("renew-deadline %s: want more than %s, %g times the retry period", e.RenewDeadline, least, leaderelection.JitterFactor)
	case e.LeaseDuration%time.Second != 0:
		return fmt.Errorf("lease-duration %s: want whole seconds, for a Lease holds no others", e.LeaseDuration)
	case e.LeaseDuration <= e.RenewDeadline:
		return fmt.Errorf("lease-duration %s: want more than the renew deadline, %s", e.LeaseDuration, e.RenewDeadline)
	}
	return nil
}

// errGivenBack is how a lead ends in good order.
var errGivenBack = errors.New("it has given its lease back")

// leaderLock is the lock of the leader's election. It has the fence know of every renewal,
// and when it was asked for. The elector calls it from one goroutine.
type leaderLock struct {
	resourcelock.Interface

	fence *lead.Fence
	// stands is the holder that the last read showed.
	stands string
	// first is done once the lead has begun, and again until it succeeds. Nothing that needs
	// the lead is started before.
	first func(context.Context) error
	begun bool
}

// NewLeaderLock returns the lock of the leader's election, which tells the fence of its
// renewals. The configuration is not that of Fenced: who asks for the lead has none. Its
// events are written until the context is done. First is what a leader does before all else.
func NewLeaderLock(ctx context.Context, cfg *rest.Config, namespace, name string, e Election, fence *lead.Fence, first func(context.Context) error) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("this host's name, which the leader's lease shows: %w", err)
	}
	config := rest.AddUserAgent(rest.CopyConfig(cfg), "leader-election")
	config.Timeout = max(e.RenewDeadline/2, time.Second) // one answer that is late does not cost the lead
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for the leader's lease: %w", err)
	}
	id := host + "_" + string(uuid.NewUUID())
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, name, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: id, EventRecorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: id})})
	if err != nil {
		return nil, fmt.Errorf("lock of the leader's lease: %w", err)
	}
	return &leaderLock{Interface: lock, fence: fence, first: first}, nil
}

// Get implements resourcelock.Interface.
func (l *leaderLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	is, raw, err := l.Interface.Get(ctx)
	if err == nil {
		if l.stands = is.HolderIdentity; l.stands != l.Identity() {
			l.fence.Ends(fmt.Errorf("its lease is held by %q", l.stands))
		}
	}
	return is, raw, err
}

// Create implements resourcelock.Interface.
func (l *leaderLock) Create(ctx context.Context, next resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, next, func() error { return l.Interface.Create(ctx, next) })
}

// Update implements resourcelock.Interface.
func (l *leaderLock) Update(ctx context.Context, next resourcelock.LeaderElectionRecord) error {
	if next.HolderIdentity == l.Identity() {
		return l.write(ctx, next, func() error { return l.Interface.Update(ctx, next) })
	}
	// The elector gives the lead back by what it remembers, with the version that it has
	// just read: without this, it would take another's.
	if l.stands != l.Identity() {
		return fmt.Errorf("the leader's lease is not given back: it is held by %q", l.stands)
	}
	l.fence.Ends(errGivenBack)
	return l.Interface.Update(ctx, next)
}

// RecordEvent implements resourcelock.Interface. Who lost the lead says so in its log alone.
func (l *leaderLock) RecordEvent(what string) {
	if over := l.fence.Over(); over == nil || errors.Is(over, errGivenBack) {
		l.Interface.RecordEvent(what)
	}
}

// write acquires or renews the Lease.
func (l *leaderLock) write(ctx context.Context, next resourcelock.LeaderElectionRecord, send func() error) error {
	if over := l.fence.Over(); over != nil { // others need not wait for who writes no more
		return fmt.Errorf("the leader's lease is not renewed: %w", over)
	}
	asked := l.fence.Elapsed()
	if err := send(); err != nil {
		return err
	}
	l.fence.Renewed(lead.Epoch{
		Lease: l.Describe(), Transitions: next.LeaderTransitions, Acquired: next.AcquireTime.UnixMicro(),
	}, asked)
	if l.begun {
		return nil
	}
	if err := l.first(ctx); err != nil { // the elector asks for the lease again, which is ours
		return fmt.Errorf("this process has the leader's lease, and does not begin: %w", err)
	}
	l.begun = true
	return nil
}

// Leading is what a Lease says of who leads.
type Leading struct {
	// Holder leads; empty if nobody does.
	Holder string
	// Last led before nobody did, and Renewed is when the Lease was renewed last; either may not be known.
	Last    string
	Renewed time.Time
	// Namespace is that of the Lease; empty if there is none, as where Weir runs with --leader-elect=false.
	Namespace string
}

// Leader returns who leads by a Lease of this name.
func Leader(ctx context.Context, api client.Reader, name string, now time.Time) (Leading, error) {
	var all coordinationv1.LeaseList
	if err := api.List(ctx, &all); err != nil {
		return Leading{}, fmt.Errorf("reading Leases: %w", err)
	}
	var seen Leading
	for _, l := range all.Items {
		if l.Name != name {
			continue
		}
		seen = Leading{Namespace: l.Namespace, Last: ptr.Deref(l.Spec.HolderIdentity, "")}
		if l.Spec.RenewTime == nil {
			continue
		}
		seen.Renewed = l.Spec.RenewTime.Time
		if term := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second; seen.Last != "" && now.Before(seen.Renewed.Add(term)) {
			seen.Holder, seen.Last = seen.Last, ""
			return seen, nil
		}
	}
	return seen, nil
}
