// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"strings"
)

func (e *Emulator) checkPreconditions(x *exchange) *Problem {
	id := x.route.id
	agg := e.aggregates[id.rootKey()]
	exists := agg != nil && agg.hasResource(id)
	if !exists && x.route.kind == KindDelete {
		x.status, x.done = http.StatusNoContent, true
		return nil
	}
	match, noneMatch := e.effectivePreconditions(x)
	if noneMatch == "*" && exists && e.isHidden(agg) {
		if problem := rejectRecreation(agg); problem != nil {
			return problem
		}
	}
	if noneMatch == "*" && exists {
		return preconditionFailed("ResourceAlreadyExists", fmt.Sprintf("Resource %s exists, and If-None-Match * asks that it does not.", id))
	}
	if match == "" || exists && match == "*" {
		return nil
	}
	if !exists {
		return preconditionFailed("PreconditionFailedEtagMismatch", fmt.Sprintf(
			"Etag provided in if-match header %s does not match: resource %s does not exist in NRP data store.", match, id))
	}
	var tags []string
	for tag := range strings.SplitSeq(match, ",") {
		tag = quoteEtag(id.root, strings.TrimSpace(tag))
		if tag == agg.etag {
			return nil
		}
		tags = append(tags, tag)
	}
	return etagMismatch(agg, strings.Join(tags, ","))
}

// rejectRecreation: a hidden deletion still holds private frontend addresses.
func rejectRecreation(agg *aggregate) *Problem {
	if agg.id.root != loadBalancerKind {
		return nil
	}
	for _, c := range objectList(propertyFields(agg.body), frontends) {
		if ip := stringField(propertyFields(c), "privateIPAddress"); ip != "" {
			return &Problem{
				Status: http.StatusBadRequest, Code: "PrivateIPAddressInUse",
				Message: fmt.Sprintf("Private IP address %s is in use by %s.", ip, agg.id.withChild(frontendKind, stringField(c, "name"))),
			}
		}
	}
	return nil
}

// quoteEtag adds missing quotes, as Azure does.
func quoteEtag(k *rootKind, tag string) string {
	switch {
	case strings.HasSuffix(tag, `"`):
		return tag
	case k.namespace == compute:
		return `"` + tag + `"`
	}
	return `W/"` + tag + `"`
}

func etagMismatch(agg *aggregate, tags string) *Problem {
	if agg.id.root.namespace == compute {
		return &Problem{
			Status: http.StatusPreconditionFailed, Code: "PreconditionFailed",
			Message: fmt.Sprintf("Etag provided in if-match header %s does not match etag %s of resource.", tags, agg.etag),
		}
	}
	return preconditionFailed("PreconditionFailedEtagMismatch", fmt.Sprintf(
		"Etag provided in if-match header %s does not match etag %s of resource %s in NRP data store.", tags, agg.etag, agg.id))
}

func preconditionFailed(code, message string) *Problem {
	return &Problem{
		Status: http.StatusPreconditionFailed, Code: "PreconditionFailed", Message: "Precondition failed.",
		Details: []Detail{{Code: code, Message: message}},
	}
}
