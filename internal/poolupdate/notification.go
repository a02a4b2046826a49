// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"

	"weir.dev/weir/internal/poolschedule"
)

// notificationList is each Service's last notification about a pool. With the usual single Service, a map
// would take ten times the memory.
type notificationList []lastNotification

type lastNotification struct {
	service      poolschedule.ServiceName
	notification poolschedule.Notification
}

func (l notificationList) indexOf(s poolschedule.ServiceName) int {
	return slices.IndexFunc(l, func(is lastNotification) bool { return is.service == s })
}

func (l notificationList) hasService(s poolschedule.ServiceName) bool { return l.indexOf(s) >= 0 }

func (l notificationList) withService(s poolschedule.ServiceName, word poolschedule.Notification) notificationList {
	if i := l.indexOf(s); i >= 0 {
		l[i].notification = word
		return l
	}
	return append(l, lastNotification{s, word})
}

func (l notificationList) toMap() map[poolschedule.ServiceName]poolschedule.Notification {
	all := make(map[poolschedule.ServiceName]poolschedule.Notification, len(l))
	for _, is := range l {
		all[is.service] = is.notification
	}
	return all
}
