// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"slices"

	"weir.dev/weir/internal/pool/schedule"
)

// notificationList is each Service's last notification. It is usually one: a map would take ten times the memory.
type notificationList []lastNotification

type lastNotification struct {
	service      schedule.ServiceName
	notification schedule.Notification
}

func (l notificationList) indexOf(s schedule.ServiceName) int {
	return slices.IndexFunc(l, func(is lastNotification) bool { return is.service == s })
}

func (l notificationList) hasService(s schedule.ServiceName) bool { return l.indexOf(s) >= 0 }

func (l notificationList) withService(s schedule.ServiceName, word schedule.Notification) notificationList {
	if i := l.indexOf(s); i >= 0 {
		l[i].notification = word
		return l
	}
	return append(l, lastNotification{s, word})
}

func (l notificationList) toMap() map[schedule.ServiceName]schedule.Notification {
	all := make(map[schedule.ServiceName]schedule.Notification, len(l))
	for _, is := range l {
		all[is.service] = is.notification
	}
	return all
}
