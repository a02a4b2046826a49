// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/ratelimit"
)

const (
	// delayInterval is how often the annotations are compared with the members of all pools, as often as the cluster
	// autoscaler reads them.
	delayInterval = 5 * time.Second
	// maxDelayWrites limits the writes of one comparison.
	maxDelayWrites = 20
)

// DeletionDelays annotates members, so that the cluster autoscaler deletes their machines only once they take no new
// flows.
type DeletionDelays struct {
	Nodes  *cache.Snapshot
	Writer client.Writer
	// ListMembers lists the recorded members of a pool; false if the record is not loaded yet.
	ListMembers func(p *v1alpha1.BackendPool, add func(ip netip.Addr, down time.Time)) bool
	Log         *slog.Logger
}

// Run compares until the context is done.
func (d DeletionDelays) Run(ctx context.Context) {
	last := ""
	for ratelimit.Sleep(ctx, delayInterval) == nil {
		text := ""
		if err := d.updateNodes(ctx, time.Now()); err != nil {
			text = err.Error()
		}
		if text != "" && text != last && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "the cluster autoscaler may delete machines that take flows", "err", text)
		}
		last = text
	}
}

// updateNodes writes the annotations that differ. Without all records it removes none; a new BackendPool, which any
// namespace may have, does not keep it from adding. It ends at the first error.
func (d DeletionDelays) updateNodes(ctx context.Context, now time.Time) error {
	isDown, complete := map[netip.Addr]bool{}, true // by member
	for _, p := range cache.All[v1alpha1.BackendPool](d.Nodes.Pools) {
		loaded := d.ListMembers(p, func(ip netip.Addr, down time.Time) {
			before, known := isDown[ip]
			isDown[ip] = (before || !known) && !down.IsZero() && !now.Before(down.Add(membership.ProbeWait))
		})
		complete = complete && loaded
	}
	writes := 0
	for _, n := range cache.All[corev1.Node](d.Nodes.Nodes) {
		_, ok := n.Annotations[lb.DelayAnnotation]
		in := lb.DelayInput{Taints: cache.StateOf(n).Taints, HasDelay: ok, IsDown: true}
		for _, ip := range cache.InternalIPs(n) {
			if down, isMember := isDown[ip]; isMember {
				in.IsMember, in.IsDown = true, in.IsDown && down
			}
		}
		needs := in.NeedsDelay(now)
		if needs == ok || !needs && !complete || n.DeletionTimestamp != nil {
			continue
		}
		if writes++; writes > maxDelayWrites {
			break
		}
		if err := d.writeDelay(ctx, n, needs); err != nil {
			return err
		}
	}
	return nil
}

func (d DeletionDelays) writeDelay(ctx context.Context, n *corev1.Node, delay bool) error {
	var value *string
	if delay {
		value = new("true")
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": n.UID, "annotations": map[string]*string{lb.DelayAnnotation: value}}})
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	err = d.Writer.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(k8s.FieldOwner))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // deleted, or recreated under its name
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("annotations of nodes: apply the role of config/delay-node-deletion: %w", err)
	case err != nil:
		return fmt.Errorf("annotation of node %s: %w", n.Name, err)
	}
	return nil
}
