// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	"weir.dev/weir/internal/leader"
)

// ProvisionerLease is the leader election Lease of weir-provisioner.
const ProvisionerLease = "weir-provisioner"

// Election holds the leader election timing, named as in client-go.
type Election struct {
	// LeaseDuration is how long others wait after the last renewal they observed.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader writes after its last renewal. The rest of LeaseDuration
	// is for requests in flight.
	RenewDeadline time.Duration
	// RetryPeriod is the interval of renewals and acquisition attempts.
	RetryPeriod time.Duration
}

// DefaultElection returns the timing of the Kubernetes controllers.
func DefaultElection() Election {
	return Election{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
}

// Validate returns an error that names the field.
func (e Election) Validate() error {
	minimum := time.Duration(float64(e.RetryPeriod) * leaderelection.JitterFactor)
	switch {
	case e.RetryPeriod <= 0:
		return fmt.Errorf("retry-period %s: want more than 0", e.RetryPeriod)
	case e.RenewDeadline <= minimum:
		return fmt.Errorf("renew-deadline %s: want more than %s, %g times the retry period", e.RenewDeadline, minimum, leaderelection.JitterFactor)
	case e.LeaseDuration%time.Second != 0:
		return fmt.Errorf("lease-duration %s: want whole seconds, for a Lease holds no others", e.LeaseDuration)
	case e.LeaseDuration <= e.RenewDeadline:
		return fmt.Errorf("lease-duration %s: want more than the renew deadline, %s", e.LeaseDuration, e.RenewDeadline)
	}
	return nil
}

var errReleased = errors.New("it has given its lease back")

// leaderLock reports every renewal and its start time to the fence. The elector calls it from one
// goroutine.
type leaderLock struct {
	resourcelock.Interface

	fence          *leader.Fence
	observedHolder string
	// onAcquired runs after acquisition, and is retried until it succeeds.
	onAcquired func(context.Context) error
	started    bool
}

// NewLeaderLock returns a lock that reports renewals to the fence. cfg must not be fenced: a
// candidate is not the leader yet. Events are written until ctx is done. first runs before all
// other work of a leader. The Lease gets the annotations of its holder.
func NewLeaderLock(ctx context.Context, cfg *rest.Config, lease metav1.ObjectMeta, e Election, fence *leader.Fence, first func(context.Context) error) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("this host's name, which the leader's lease shows: %w", err)
	}
	config := rest.AddUserAgent(rest.CopyConfig(cfg), "leader-election")
	config.Timeout = max(e.RenewDeadline/2, time.Second) // one slow response must not cost the leadership
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for the leader's lease: %w", err)
	}
	id := host + "_" + string(uuid.NewUUID())
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, lease.Namespace, lease.Name, client.CoreV1(), annotatedLeases{client.CoordinationV1(), lease.Annotations},
		resourcelock.ResourceLockConfig{Identity: id, EventRecorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: id})})
	if err != nil {
		return nil, fmt.Errorf("lock of the leader's lease: %w", err)
	}
	return &leaderLock{Interface: lock, fence: fence, onAcquired: first}, nil
}

// Get implements resourcelock.Interface.
func (l *leaderLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.fence.RecordObserved(string(raw))
		if l.observedHolder = record.HolderIdentity; l.observedHolder != l.Identity() {
			l.fence.EndTerm(fmt.Errorf("its lease is held by %q", l.observedHolder))
		}
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *leaderLock) Create(ctx context.Context, next resourcelock.LeaderElectionRecord) error {
	return l.renewLease(ctx, next, func() error { return l.Interface.Create(ctx, next) })
}

// Update implements resourcelock.Interface.
func (l *leaderLock) Update(ctx context.Context, next resourcelock.LeaderElectionRecord) error {
	if next.HolderIdentity == l.Identity() {
		return l.renewLease(ctx, next, func() error { return l.Interface.Update(ctx, next) })
	}
	// The elector releases from memory but with the version it just read, which may be another
	// holder's.
	if l.observedHolder != l.Identity() {
		return fmt.Errorf("the leader's lease is not given back: it is held by %q", l.observedHolder)
	}
	l.fence.EndTerm(errReleased)
	return l.Interface.Update(ctx, next)
}

// RecordEvent implements resourcelock.Interface.
func (l *leaderLock) RecordEvent(message string) {
	if endReason := l.fence.EndReason(); endReason == nil || errors.Is(endReason, errReleased) {
		l.Interface.RecordEvent(message)
	}
}

func (l *leaderLock) renewLease(ctx context.Context, next resourcelock.LeaderElectionRecord, send func() error) error {
	if endReason := l.fence.EndReason(); endReason != nil { // let others take over without waiting
		return fmt.Errorf("the leader's lease is not renewed: %w", endReason)
	}
	requestedAt := l.fence.ReadClock()
	if err := send(); err != nil {
		return err
	}
	l.fence.RecordRenew(leader.Epoch{
		Lease: l.Describe(), TransitionCount: next.LeaderTransitions, AcquireTime: next.AcquireTime.UnixMicro(),
	}, requestedAt)
	if l.started {
		return nil
	}
	if err := l.onAcquired(ctx); err != nil { // the elector tries again, and this process holds the lease
		return fmt.Errorf("this process has the leader's lease, and does not begin: %w", err)
	}
	l.started = true
	return nil
}

// LeaderStatus is the leader according to a Lease.
type LeaderStatus struct {
	// Holder is the current leader; empty if none.
	Holder string
	// PreviousHolder is the previous leader while there is none.
	PreviousHolder string
	RenewTime      time.Time
	// Namespace is empty if there is no Lease, as with --leader-elect=false.
	Namespace string
	// Version and Class are those of the leader, or of the previous one. Class is nil if the Lease does not have it.
	Version string
	Class   *string
	// Rivals are the other Leases of this name that are held, by namespace.
	Rivals []LeaderStatus
}

// FindLeader returns the leader by the Lease with this name.
func FindLeader(ctx context.Context, api client.Reader, name string, now time.Time) (LeaderStatus, error) {
	var list coordinationv1.LeaseList
	if err := api.List(ctx, &list); err != nil {
		return LeaderStatus{}, fmt.Errorf("reading Leases: %w", err)
	}
	var last LeaderStatus
	var leases []LeaderStatus
	for i := range list.Items {
		if list.Items[i].Name != name {
			continue
		}
		if last = NewLeaderStatus(&list.Items[i], now); last.Holder != "" {
			leases = append(leases, last)
		}
	}
	if len(leases) == 0 {
		return last, nil
	}
	leader := leases[0]
	if len(leases) > 1 {
		leader.Rivals = leases[1:]
	}
	return leader, nil
}

// NewLeaderStatus returns the leader according to a Lease.
func NewLeaderStatus(l *coordinationv1.Lease, now time.Time) LeaderStatus {
	leader := LeaderStatus{Namespace: l.Namespace, PreviousHolder: ptr.Deref(l.Spec.HolderIdentity, ""), Version: l.Annotations[VersionAnnotation]}
	if class, ok := l.Annotations[ClassAnnotation]; ok {
		leader.Class = &class
	}
	if l.Spec.RenewTime == nil {
		return leader
	}
	leader.RenewTime = l.Spec.RenewTime.Time
	if term := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second; leader.PreviousHolder != "" && now.Before(leader.RenewTime.Add(term)) {
		leader.Holder, leader.PreviousHolder = leader.PreviousHolder, ""
	}
	return leader
}
