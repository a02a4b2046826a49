// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"slices"
	"strconv"
	"time"
)

// DelayAnnotation keeps the cluster autoscaler from deleting the machine of a node. The autoscaler reads it when it has
// tainted the node and evicted its pods, and then waits two minutes at most by default.
const DelayAnnotation = "delay-deletion.cluster-autoscaler.kubernetes.io/weir"

// DelayTimeout is how long after its taint a node has the annotation.
const DelayTimeout = 10 * time.Minute

// DelayInput is what decides whether a node has the annotation.
type DelayInput struct {
	Taints []NodeTaint
	// HasDelay is true if the node has the annotation. One that is set after the taint comes too late.
	HasDelay bool
	// IsMember is true if a pool has the node, IsDown if it has taken no new flows in any of them for some time.
	IsMember, IsDown bool
}

// NeedsDelay reports whether a node needs the annotation.
func (d DelayInput) NeedsDelay(now time.Time) bool {
	i := slices.IndexFunc(d.Taints, func(t NodeTaint) bool { return t.Key == keyToBeDeleted })
	if !d.IsMember || i < 0 {
		return d.IsMember
	}
	seconds, err := strconv.ParseInt(d.Taints[i].Value, 10, 64)
	return err == nil && d.HasDelay && !d.IsDown && now.Before(time.Unix(seconds, 0).Add(DelayTimeout))
}
