// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// The functions here put what is wanted into a copy of what was read. Where it says the
// same already nothing is touched: what Azure leaves unsaid, or spells its own way, stays
// so. In a new part all is said, zeros too.

// set puts a number or a truth value.
func set[T comparable](fresh bool, field **T, was, is T) {
	if fresh || was != is {
		*field = &is
	}
}

// say puts a word; empty is none.
func say[F, T ~string](fresh bool, field **F, was, is T) {
	switch {
	case !fresh && was == is:
	case is == "":
		*field = nil
	default:
		*field = new(F(is))
	}
}

// refer puts a reference to another part of the load balancer; no name is none.
func refer(field **armnetwork.SubResource, id lb.LoadBalancerID, collection, was, is string) {
	switch {
	case strings.EqualFold(was, is):
	case is == "":
		*field = nil
	default:
		*field = &armnetwork.SubResource{ID: new(id.String() + "/" + collection + "/" + is)}
	}
}

// extendedLocation puts one.
func extendedLocation(read *armnetwork.ExtendedLocation, was, is string) *armnetwork.ExtendedLocation {
	switch {
	case was == is:
		return read
	case is == "":
		return nil
	}
	return &armnetwork.ExtendedLocation{Name: &is, Type: new(armnetwork.ExtendedLocationTypesEdgeZone)}
}

// encodeTags says that there are none with an empty object.
func encodeTags(tags map[string]string) map[string]*string {
	next := make(map[string]*string, len(tags))
	for name, text := range tags {
		next[name] = &text
	}
	return next
}

func pointers(list []string) []*string {
	next := make([]*string, len(list))
	for i := range list {
		next[i] = &list[i]
	}
	return next
}
