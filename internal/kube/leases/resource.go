// SPDX-License-Identifier: Apache-2.0

package leases

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

	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/lead"
	"weir.dev/weir/internal/lease"
)

// The Lease that controllers of the cluster's load balancers take before they write.
// Its names are a contract with them; config/resource-lease names it too.
const (
	resourceNamespace = "kube-system"
	resourceName      = "aks-managed-resource-locker"
	// previousHolder tells the Azure cloud provider whether somebody else has written
	// since, so that it reads anew what it remembers.
	previousHolder = "aks-managed-resource-locker-previous-holder"
	// ResourceTerm is how long the Lease is acquired for.
	ResourceTerm = 15 * time.Minute
)

const (
	// holderPrefix is what the holder's name of each replica begins with, and the
	// name that we leave to the Azure cloud provider.
	holderPrefix = "weir-controller"
	// leaderEpoch is in which epoch of the leader's election a replica holds the Lease.
	leaderEpoch = "weir.dev/leader-epoch"
	// skewAllowed is how much later than by its own account another's term ends.
	skewAllowed = 30 * time.Second
	// conflictTries is how often the Lease is read again in one request because
	// somebody else wrote it.
	conflictTries = 3
)

// Resource implements lease.Holder. It is for one goroutine at a time. While
// nobody else writes the Lease, an acquisition, a renewal and a release are one
// request each, and a refusal is one.
type Resource struct {
	leases typedcoordinationv1.LeaseInterface
	// holder is this process, and fence whether it leads.
	holder string
	fence  *lead.Fence
	// known is the Lease as we wrote it last; nil if that may not be what stands.
	known *coordinationv1.Lease
	// seen is another's acquisition, and since when we have seen it.
	seen      acquisition
	seenSince time.Time
}

var _ lease.Holder = (*Resource)(nil)

// acquisition tells whether a Lease was renewed since we saw it.
type acquisition struct {
	holder  string
	renewed time.Time
}

// NewResource returns a Resource, which sends nothing yet. The fence is that of
// the leader's election; nil if there is none.
func NewResource(cfg *rest.Config, client *http.Client, fence *lead.Fence) (*Resource, error) {
	api, err := typedcoordinationv1.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("client for leases: %w", err)
	}
	return &Resource{leases: api.Leases(resourceNamespace), holder: holderPrefix + "_" + string(uuid.NewUUID()), fence: fence}, nil
}

// Acquire implements lease.Holder.
func (l *Resource) Acquire(ctx context.Context) error {
	return l.untilNoConflict(ctx, "acquiring", func(stands *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		now := time.Now()
		if err := l.heldByOther(stands, now); err != nil {
			return nil, err
		}
		return l.claimed(stands, now), nil
	})
}

// Release implements lease.Holder.
func (l *Resource) Release(ctx context.Context) error {
	return l.untilNoConflict(ctx, "releasing", func(stands *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if holderOf(stands) != l.holder {
			return nil, nil
		}
		next := stands.DeepCopy()
		next.Spec.HolderIdentity = new("")
		delete(next.Annotations, leaderEpoch)
		return next, nil
	})
}

// untilNoConflict writes what change makes of the Lease as it stands, or leaves it if
// that is nil. Whoever writes in between is read first.
func (l *Resource) untilNoConflict(ctx context.Context, doing string, change func(stands *coordinationv1.Lease) (*coordinationv1.Lease, error)) error {
	var err error
	for range conflictTries {
		stands := l.known
		l.known = nil
		if stands == nil {
			if stands, err = l.read(ctx); err != nil {
				return fmt.Errorf("reading the lease %s/%s: %w", resourceNamespace, resourceName, err)
			}
		}
		next, refused := change(stands)
		if next == nil {
			return refused
		}
		if l.known, err = l.write(ctx, next); err == nil {
			return nil
		}
		l.known = nil
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return fmt.Errorf("%s the lease %s/%s: %w", doing, resourceNamespace, resourceName, err)
}

// read returns the Lease as it stands; one without a version if there is none.
func (l *Resource) read(ctx context.Context) (*coordinationv1.Lease, error) {
	stands, err := l.leases.Get(ctx, resourceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: resourceNamespace, Name: resourceName}}, nil
	}
	return stands, err
}

func (l *Resource) write(ctx context.Context, next *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if next.ResourceVersion == "" {
		return l.leases.Create(ctx, next, metav1.CreateOptions{FieldManager: apiserver.FieldOwner})
	}
	return l.leases.Update(ctx, next, metav1.UpdateOptions{FieldManager: apiserver.FieldOwner})
}

// heldByOther returns a *lease.HeldError while somebody else holds the Lease. Its term
// is over by its own account and a bit more, which allows for clocks that differ; or,
// whatever the clocks say, when we saw no renewal for as long as the term. The first
// alone would wait for ever behind a clock that is far ahead; the second alone would
// wait a whole term behind a holder that is long gone.
func (l *Resource) heldByOther(stands *coordinationv1.Lease, now time.Time) error {
	holder := holderOf(stands)
	if holder == "" || holder == l.holder || l.succeeds(stands) {
		return nil
	}
	var is acquisition
	var term time.Duration
	is.holder = holder
	if stands.Spec.RenewTime != nil {
		is.renewed = stands.Spec.RenewTime.Time
	}
	if stands.Spec.LeaseDurationSeconds != nil {
		term = time.Duration(*stands.Spec.LeaseDurationSeconds) * time.Second
	}
	if l.seen.holder != is.holder || !l.seen.renewed.Equal(is.renewed) {
		l.seen, l.seenSince = is, now
	}
	end := is.renewed.Add(term)
	if now.After(end.Add(skewAllowed)) || now.Sub(l.seenSince) >= term {
		return nil
	}
	return &lease.HeldError{Lease: resourceNamespace + "/" + resourceName, Holder: holder, Until: end}
}

// claimed returns the Lease as ours from now on. Our name is left for the next holder
// at once, and not with the release: a crash leaves it, too.
func (l *Resource) claimed(stands *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	next := stands.DeepCopy()
	at := metav1.NewMicroTime(now)
	if holderOf(stands) != l.holder {
		next.Spec.AcquireTime = &at
	}
	next.Spec.HolderIdentity = new(l.holder)
	next.Spec.LeaseDurationSeconds = new(int32(ResourceTerm / time.Second))
	next.Spec.RenewTime = &at
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[previousHolder] = holderPrefix
	delete(next.Annotations, leaderEpoch)
	if in, leads := l.fence.Epoch(); leads {
		next.Annotations[leaderEpoch] = in.String()
	}
	return next
}

// succeeds reports whether a replica holds the Lease that writes no more: we lead, and it
// took the Lease in an epoch of the same election that has ended. So a new leader goes on
// at once where one was killed. Replicas without an election exclude each other as all
// others do.
func (l *Resource) succeeds(stands *coordinationv1.Lease) bool {
	in, leads := l.fence.Epoch()
	before, told := lead.ParseEpoch(stands.Annotations[leaderEpoch])
	return leads && told && strings.HasPrefix(holderOf(stands), holderPrefix+"_") && before.Before(in)
}

func holderOf(stands *coordinationv1.Lease) string {
	if stands.Spec.HolderIdentity == nil {
		return ""
	}
	return *stands.Spec.HolderIdentity
}
