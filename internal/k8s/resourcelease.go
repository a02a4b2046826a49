// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"weir.dev/weir/internal/leader"
)

// The resource Lease that controllers of the cluster's load balancers acquire before they write.
// The names are a contract with them; config/resource-lease uses them, too.
const (
	resourceNamespace = "kube-system"
	resourceName      = "aks-managed-resource-locker"
	// previousHolderAnnotation: cloud-provider-azure drops its cache if another controller has written.
	previousHolderAnnotation = "aks-managed-resource-locker-previous-holder"
	// ResourceTerm is the lease duration.
	ResourceTerm = 15 * time.Minute
)

const (
	// holderPrefix starts each replica's holder identity, and is the previous holder left for
	// cloud-provider-azure.
	holderPrefix    = "weir-controller"
	epochAnnotation = "weir.dev/leader-epoch"
	// maxClockSkew extends another holder's term.
	maxClockSkew       = 30 * time.Second
	maxConflictRetries = 3
)

// ResourceLease implements leader.LeaseHolder. Not safe for concurrent use. Without other writers, each call
// is one request.
type ResourceLease struct {
	leases typedcoordinationv1.LeaseInterface
	holder string
	fence  *leader.Fence
	// lastWritten is the Lease as last written; nil if it may have changed.
	lastWritten *coordinationv1.Lease
	// observed is another holder's last renewal, observedSince when it was first observed.
	observed      renewal
	observedSince time.Time
}

var _ leader.LeaseHolder = (*ResourceLease)(nil)

type renewal struct {
	holder    string
	renewTime time.Time
}

// NewResourceLease returns a Resource. fence is nil without leader election.
func NewResourceLease(cfg *rest.Config, client *http.Client, fence *leader.Fence) (*ResourceLease, error) {
	api, err := typedcoordinationv1.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("client for leases: %w", err)
	}
	return &ResourceLease{leases: api.Leases(resourceNamespace), holder: holderPrefix + "_" + string(uuid.NewUUID()), fence: fence}, nil
}

// Acquire implements leader.LeaseHolder.
func (l *ResourceLease) Acquire(ctx context.Context) error {
	return l.updateLease(ctx, "acquiring", func(current *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		now := time.Now()
		if err := l.checkHolder(current, now); err != nil {
			return nil, err
		}
		return l.withHolder(current, now), nil
	})
}

// Release implements leader.LeaseHolder.
func (l *ResourceLease) Release(ctx context.Context) error {
	return l.updateLease(ctx, "releasing", func(current *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if holderOf(current) != l.holder {
			return nil, nil
		}
		next := current.DeepCopy()
		next.Spec.HolderIdentity = new("")
		delete(next.Annotations, epochAnnotation)
		return next, nil
	})
}

// updateLease writes the result of change, unless that is nil.
func (l *ResourceLease) updateLease(ctx context.Context, action string, change func(current *coordinationv1.Lease) (*coordinationv1.Lease, error)) error {
	var err error
	for range maxConflictRetries {
		current := l.lastWritten
		l.lastWritten = nil
		if current == nil {
			if current, err = l.getLease(ctx); err != nil {
				return fmt.Errorf("reading the lease %s/%s: %w", resourceNamespace, resourceName, err)
			}
		}
		next, refused := change(current)
		if next == nil {
			return refused
		}
		if l.lastWritten, err = l.putLease(ctx, next); err == nil {
			return nil
		}
		l.lastWritten = nil
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return fmt.Errorf("%s the lease %s/%s: %w", action, resourceNamespace, resourceName, err)
}

func (l *ResourceLease) getLease(ctx context.Context) (*coordinationv1.Lease, error) {
	current, err := l.leases.Get(ctx, resourceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: resourceNamespace, Name: resourceName}}, nil
	}
	return current, err
}

func (l *ResourceLease) putLease(ctx context.Context, next *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if next.ResourceVersion == "" {
		return l.leases.Create(ctx, next, metav1.CreateOptions{FieldManager: FieldOwner})
	}
	return l.leases.Update(ctx, next, metav1.UpdateOptions{FieldManager: FieldOwner})
}

// checkHolder returns a *leader.HolderError while another controller holds the Lease. Its term ends by
// its own timestamps plus maxClockSkew, or when no renewal was observed for a whole term: the first
// alone would wait forever for a clock far ahead, the second a whole term for a holder that no
// longer runs.
func (l *ResourceLease) checkHolder(current *coordinationv1.Lease, now time.Time) error {
	holder := holderOf(current)
	if holder == "" || holder == l.holder || l.isFormerLeader(current) {
		return nil
	}
	var r renewal
	var term time.Duration
	r.holder = holder
	if current.Spec.RenewTime != nil {
		r.renewTime = current.Spec.RenewTime.Time
	}
	if current.Spec.LeaseDurationSeconds != nil {
		term = time.Duration(*current.Spec.LeaseDurationSeconds) * time.Second
	}
	if l.observed.holder != r.holder || !l.observed.renewTime.Equal(r.renewTime) {
		l.observed, l.observedSince = r, now
	}
	end := r.renewTime.Add(term)
	if now.After(end.Add(maxClockSkew)) || now.Sub(l.observedSince) >= term {
		return nil
	}
	return &leader.HolderError{Lease: resourceNamespace + "/" + resourceName, Holder: holder, Until: end}
}

// withHolder writes the previous holder now rather than on release, to survive a crash.
func (l *ResourceLease) withHolder(current *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	next := current.DeepCopy()
	at := metav1.NewMicroTime(now)
	if holderOf(current) != l.holder {
		next.Spec.AcquireTime = &at
	}
	next.Spec.HolderIdentity = new(l.holder)
	next.Spec.LeaseDurationSeconds = new(int32(ResourceTerm / time.Second))
	next.Spec.RenewTime = &at
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[previousHolderAnnotation] = holderPrefix
	delete(next.Annotations, epochAnnotation)
	if in, isLeader := l.fence.Epoch(); isLeader {
		next.Annotations[epochAnnotation] = in.String()
	}
	return next
}

// isFormerLeader reports whether the holder is a former leader: it acquired the Lease in an earlier epoch
// of the same election. Replicas without leader election exclude each other.
func (l *ResourceLease) isFormerLeader(current *coordinationv1.Lease) bool {
	in, isLeader := l.fence.Epoch()
	before, known := leader.ParseEpoch(current.Annotations[epochAnnotation])
	return isLeader && known && strings.HasPrefix(holderOf(current), holderPrefix+"_") && before.Before(in)
}

func holderOf(current *coordinationv1.Lease) string {
	if current.Spec.HolderIdentity == nil {
		return ""
	}
	return *current.Spec.HolderIdentity
}
