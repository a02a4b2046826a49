// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"strings"
	"time"

	"weir.dev/weir/internal/fault"
)

// wireSection is a part of the table.
type wireSection struct {
	title string
	rows  []wireRow
}

func wireTable() []wireSection {
	return []wireSection{
		{"Success that is none, and redirects", oddSuccess()},
		{"Refusals", refusals()},
		{"Missing", missing()},
		{"Somebody else is at work", conflicts()},
		{"Too many requests", throttles()},
		{"Server errors", serverErrors()},
		{"Retry-After", retryAfters()},
		{"No answer", noAnswers()},
		{"An accepted write that ended badly", endings()},
	}
}

const (
	proxyPage    = "<html><body>kubernetes shop-web: something went wrong</body></html>"
	balancerGone = "The Resource 'Microsoft.Network/loadBalancers/kubernetes' under resource group 'rg' was not found."
)

var after = poolBody("Succeeded", "10.0.0.4", "10.0.0.5")

// bare returns a response with a status and a body.
func bare(status int, body string) reply { return reply{status: status, body: body} }

// said returns an ARM error response.
func said(status int, code string, details ...string) reply {
	return bare(status, errorBody(code, "Some text.", details...))
}

func oddSuccess() []wireRow {
	noPool := func(name string, r reply) wireRow {
		return wireRow{name: name, answer: r, get: unknown, put: unknown}.unknownAfter()
	}
	noJSON := func(name string, r reply) wireRow {
		return wireRow{name: name, answer: r, get: unreadable, put: unknown}.unknownAfter()
	}
	odd := func(status int) wireRow {
		text := http.StatusText(status)
		return wireRow{name: text, answer: reply{status: status}, code: text, get: refused1, put: unknown}.unknownAfter()
	}
	rows := []wireRow{
		{name: "the pool as it was written", answer: bare(200, after), put: fine, self: fine, result: fine},
		{name: "201 with the pool as it was written", answer: bare(201, after), code: "Created", get: refused1, put: fine, self: fine, result: fine},
		{name: "the pool as it was before", answer: bare(200, poolBody("Succeeded", "10.0.0.4")), get: fine, put: unknown, self: unknown, result: unknown, unseen: true},
		{name: "the pool emptied", answer: bare(200, poolBody("Succeeded")), get: fine, put: unknown, self: unknown, result: unknown, unseen: true},
		{name: "another pool", answer: bare(200, strings.ReplaceAll(after, asked, asked+"-2")), get: unknown, put: unknown, poll: unknown, self: unknown, result: unknown},
		noPool("no body", reply{status: 200}),
		noPool("`null`", bare(200, "null")),
		noPool("`{}`", bare(200, "{}")),
		noJSON("a proxy's page, status 200", bare(200, proxyPage)),
		noJSON("half a body, status 200", bare(200, after[:len(after)/2])),
	}
	for _, status := range []int{202, 203, 204, 205, 206, 207} {
		rows = append(rows, odd(status))
	}
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		r := reply{status: status, header: map[string]string{"Location": "https://elsewhere.example/"}}
		rows = append(rows, refusedBy(http.StatusText(status), r, http.StatusText(status)))
	}
	return rows
}

func refusals() []wireRow {
	claims := reply{status: 401, header: map[string]string{"WWW-Authenticate": `Bearer realm="", error="insufficient_claims", claims="e30="`}}
	rows := []wireRow{
		refusedBy("`DuplicateResourceName`", said(400, "DuplicateResourceName"), "DuplicateResourceName"),
		wireRow{
			name: "`" + fault.CodeOlderVersion + "` that names a newer one", answer: bare(400, olderBody("2031-01-01")), code: fault.CodeOlderVersion,
			get: refused1, put: fate{requests: 2, class: fault.Terminal},
		}.unknownAfter(),
		ownedByLane("`RetryableError`, but 400", said(400, "RetryableError"), "RetryableError"),
		ownedByLane("`ReferencedResourceNotProvisioned`, but 400", said(400, "ReferencedResourceNotProvisioned"), "ReferencedResourceNotProvisioned"),
		ownedByLane("`ReferencedResourceNotProvisioned` as a detail, but 400", said(400, "RetryableError", "ReferencedResourceNotProvisioned", "Come again."), "ReferencedResourceNotProvisioned"),
		refusedBy("a proxy's page, status 400", bare(400, proxyPage), "Bad Request"),
		refusedBy("`ExpiredAuthenticationToken`", said(401, "ExpiredAuthenticationToken"), "ExpiredAuthenticationToken"),
		{name: "a challenge for another token", answer: claims, code: "Unauthorized", get: askedTwice, put: askedTwice, poll: twiceUnknown, self: twiceUnknown, result: twiceUnknown},
		refusedBy("`AuthorizationFailed`", said(403, "AuthorizationFailed"), "AuthorizationFailed"),
		refusedBy("a proxy's page, status 403", bare(403, proxyPage), "Forbidden"),
	}
	for _, status := range []int{400, 401, 402, 403, 405, 406, 407, 410, 411, 413, 414, 415, 417, 422, 423, 424, 425, 426, 428, 431, 451} {
		text := http.StatusText(status)
		rows = append(rows, refusedBy(text, reply{status: status}, text))
	}
	return append(rows, refusedBy("a status without a name, 499", reply{status: 499}, "HTTP 499"))
}

func missing() []wireRow {
	stale := func(name, code, message string, put fate) wireRow {
		r := bare(404, errorBody(code, message))
		return wireRow{name: name, answer: r, code: code, get: gone, put: put}.unknownAfter()
	}
	other := func(name, code, message string) wireRow {
		return refusedBy(name, bare(404, errorBody(code, message)), code)
	}
	return []wireRow{
		stale("the load balancer", "ResourceNotFound", balancerGone, gone),
		stale("the pool", "NotFound", "Resource "+webPool.String()+" not found.", gone),
		stale("the resource group", "ResourceGroupNotFound", "Resource group 'rg' could not be found.", gone),
		stale("something, not named", "NotFound", "Not found.", gone),
		stale("the parent, not named", "ParentResourceNotFound", "Can not perform the requested operation.", gone),
		wireRow{name: "no body, status 404", answer: reply{status: 404}, code: "Not Found", get: gone, put: gone}.unknownAfter(),
		refusedBy("404 broken off", reply{status: 404, body: errorBody("NotFound", balancerGone), torn: errReset}, "Not Found"),
		other("the virtual network", "ResourceNotFound", "The Resource 'Microsoft.Network/virtualNetworks/v' under resource group 'rg' was not found."),
		other("another load balancer", "ResourceNotFound", strings.ReplaceAll(balancerGone, "kubernetes", "other")),
		other("the subscription", "SubscriptionNotFound", "The subscription 's1' could not be found."),
		other("the resource type", "InvalidResourceType", "No such type."),
		refusedBy("a proxy's page, status 404", bare(404, proxyPage), "Not Found"),
	}
}

func conflicts() []wireRow {
	mismatch := said(412, "PreconditionFailed", "PreconditionFailedEtagMismatch", "Etag provided does not match.")
	return []wireRow{
		ownedByLane("`AnotherOperationInProgress`", said(409, "AnotherOperationInProgress"), "AnotherOperationInProgress"),
		ownedByLane("`ScopeLocked`", said(409, "ScopeLocked"), "ScopeLocked"),
		ownedByLane("`OperationNotAllowed`", said(409, "OperationNotAllowed"), "OperationNotAllowed"),
		ownedByLane("no body, status 409", reply{status: 409}, "Conflict"),
		ownedByLane("a proxy's page, status 409", bare(409, proxyPage), "Conflict"),
		ownedByLane("409 broken off", reply{status: 409, body: proxyPage, torn: errReset}, "Conflict"),
		after20(ownedByLane("`AnotherOperationInProgress`, Retry-After 20", said(409, "AnotherOperationInProgress"), "AnotherOperationInProgress")),
		ownedByLane("`PreconditionFailedEtagMismatch`", mismatch, "PreconditionFailedEtagMismatch"),
		ownedByLane("no body, status 412", reply{status: 412}, "Precondition Failed"),
		ownedByLane("412 broken off", reply{status: 412, body: proxyPage, torn: errReset}, "Precondition Failed"),
		after20(ownedByLane("`PreconditionFailed`, Retry-After 20", said(412, "PreconditionFailed"), "PreconditionFailed")),
	}
}

func serverErrors() []wireRow {
	var rows []wireRow
	for _, status := range []int{408, 500, 502, 503, 504} {
		text := http.StatusText(status)
		rows = append(rows, ownedBySDK(text, reply{status: status}, text),
			ownedBySDK(text+", Azure's form", said(status, "InternalServerError"), "InternalServerError"),
			ownedBySDK(text+", a proxy's page", bare(status, proxyPage), text),
			ownedBySDK(text+", broken off", reply{status: status, body: proxyPage, torn: errReset}, text))
	}
	for _, status := range []int{501, 505, 506, 507, 508, 510, 511} {
		text := http.StatusText(status)
		rows = append(rows, refusedBy(text, reply{status: status}, text))
	}
	return append(rows, refusedBy("a status without a name, 599", reply{status: 599}, "HTTP 599"))
}

// after20 adds a Retry-After of 20 seconds to a row.
func after20(r wireRow) wireRow {
	r.answer, r.after = slower(r.answer, "20"), new(20*time.Second)
	return r
}
