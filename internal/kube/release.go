// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/membership"
)

// release lets a BackendPool go that is being deleted: once none of our addresses is
// left in the pool, or at once where none of them is to be taken out.
func (c *Cluster) release(ctx context.Context, p *v1alpha1.BackendPool, e *entry, st standing) error {
	if !controllerutil.ContainsFinalizer(p, v1alpha1.Finalizer) {
		return nil // somebody else's finalizer keeps it
	}
	if st.removes() && !e.isReleased() && !c.needed(p) {
		if e.due(situationOf(p, st, membership.Set{}), time.Now()) {
			c.remove(e, st)
			return c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
				reason, why := removed(st, true)
				setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, why)
			})
		}
		return nil
	}
	if !st.works() && !st.taken && !e.abandon() {
		c.wake.add(e.ref) // it was taken this moment: judge it again
		return nil
	}
	if why := map[state]string{statePaused: "deleted while paused", stateNotAllowed: "deleted while its namespace may not bind the pool"}[st.state]; why != "" && st.taken {
		c.events.warn(p, EventLeftInPlace, why+": "+describePool(st.pool)+" was left as it is, with the addresses that Weir wrote")
	}
	// The holder forgets before it lets go, so that nothing of the next holder is
	// forgotten with it.
	if st.state != stateDuplicate && st.state != stateInvalid && st.state != stateNotAllowed {
		c.lanes.Forget(st.pool)
	}
	return c.setFinalizer(ctx, p, false)
}

func (e *entry) isReleased() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.released
}

// abandon refuses every further record, unless the pool was taken meanwhile: an
// attempt under way must not write for a BackendPool that goes without a release.
func (e *entry) abandon() bool {
	e.writing.Lock()
	defer e.writing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if takes(&e.status) {
		return false
	}
	e.gone = true
	return true
}

// setFinalizer adds or removes the finalizer. It works on a fresh copy: the cache is
// stripped, and our own status writes make it old.
func (c *Cluster) setFinalizer(ctx context.Context, p *v1alpha1.BackendPool, want bool) error {
	ref := refOf(p)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fresh, err := c.statuses.read(ctx, ref)
		if err != nil {
			return err
		}
		before := fresh.DeepCopy()
		changed := false
		if want {
			changed = controllerutil.AddFinalizer(fresh, v1alpha1.Finalizer)
		} else {
			changed = controllerutil.RemoveFinalizer(fresh, v1alpha1.Finalizer)
		}
		if !changed {
			return nil
		}
		return c.writer.Patch(ctx, fresh, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner))
	})
	if apierrors.IsNotFound(err) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("finalizer of BackendPool %s: %w", key(ref.Namespace, ref.Name), err)
	}
	return nil
}
