package events

// Stats count events since the recorder was made. Each that was recorded has been
// told, is pending or was dropped.
type Stats struct {
	// Recorded are all events, Told those that the server has heard of, each by
	// itself or in a count, and Pending those that it is yet to hear of.
	Recorded, Told, Pending uint64
	// Created and Updated are the writes that it took for that.
	Created, Updated uint64
	// Counted are events that are not objects of their own but a part of a series,
	// and Combined those that have not even a series of their own, because too many
	// were similar.
	Counted, Combined uint64
	// Dropped are those that the server does not hear of, by the reason.
	Dropped Drops
	// Series is how many series are remembered.
	Series int
}

// Drops count events that were dropped.
type Drops struct {
	// Spam are new events about an object, beyond [Options].Burst.
	Spam uint64
	// Full are those for which there was no room: the server did not take events as
	// fast as they came.
	Full uint64
	// Refused are those that the server does not want: the right to write them is
	// missing, or their namespace is gone or about to be.
	Refused uint64
	// Unreachable are those that it could not be told in many tries.
	Unreachable uint64
	// Stopped are those that were pending when the recorder stopped, or came after.
	Stopped uint64
	// Bad are those that could not be told to any server; see [ErrEvent].
	Bad uint64
}

// Total is the number of all that were dropped.
func (d Drops) Total() uint64 {
	return d.Spam + d.Full + d.Refused + d.Unreachable + d.Stopped + d.Bad
}
