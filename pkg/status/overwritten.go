package status

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writer returns the field manager that wrote a status last, given the managed fields
// of the object. Of two that wrote it in the same second, it is the other one than
// ours.
func Writer(fields []metav1.ManagedFieldsEntry, ours string) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range fields {
		if entry.Subresource != "status" || entry.Time == nil {
			continue
		}
		if last.Time == nil || last.Time.Before(entry.Time) || last.Time.Equal(entry.Time) && last.Manager == ours {
			last = entry
		}
	}
	return last.Manager
}

// Overwritten returns the event that reports who has written a status that belongs
// to the controller, and what to do.
func Overwritten(writer, ours string) Event {
	who, cure := fmt.Sprintf("The field manager %q", writer), "If that is another controller, stop one of the two."
	if writer == ours || writer == "" {
		who = fmt.Sprintf("Another process with the field manager %q", ours)
		cure = "If two controllers run in this cluster, stop one of them, or run both with the same Lease (-leader-elect)."
	}
	return Event{
		Type: corev1.EventTypeWarning, Reason: "StatusOverwritten",
		Note: Clip(who + " has written the status of this Network, which belongs to the controller. The controller " +
			"corrects it, and waits longer each time, up to about ten minutes. " + cure),
	}
}
