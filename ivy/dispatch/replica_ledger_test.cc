#include "ivy/dispatch/replica_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_replica.h"

namespace bouquet::ivy {
namespace {

using std::chrono::milliseconds;
using State = ReplicaLedger::ProbeAnswer::State;
using testing::FakeReplicaDescription;
using ::testing::HasSubstr;

constexpr ProbeSchedule::Options kProbe{milliseconds(1000), milliseconds(100), milliseconds(400)};

ReplicaLedger::ProbeAnswer Serving(int64_t queued_tokens = 0) {
  return {State::kServing, "", FakeReplicaDescription(), queued_tokens, 500};
}

ReplicaLedger::ProbeAnswer Unusable(State state, const std::string& reason) {
  return {state, reason, {}, 0, 0};
}

/// One probe as a replica's owner makes it, with the verdict it would get.
bool Probe(ReplicaLedger& ledger, ReplicaLedger::ProbeAnswer answer, Status verdict = {}) {
  ledger.BeginProbe();
  const bool asks = answer.state == State::kServing && ledger.IsNew(answer.description);
  return ledger.NoteProbe(std::move(answer),
                          asks ? std::optional(std::move(verdict)) : std::nullopt);
}

TEST(ReplicaLedgerTest, IsNotReadyBeforeTheFirstProbe) {
  const ReplicaLedger ledger("host:1", kProbe);
  EXPECT_FALSE(ledger.Load().ready);
  EXPECT_THAT(ledger.Load().reason_unready, HasSubstr("host:1 has not been reached"));
  EXPECT_FALSE(ledger.description().has_value());
}

TEST(ReplicaLedgerTest, IsReadyOnceAnAdmittedReplicaServes) {
  ReplicaLedger ledger("host:1", kProbe);
  EXPECT_FALSE(Probe(ledger, Serving()));
  EXPECT_TRUE(ledger.Load().ready);
  EXPECT_EQ(ledger.Load().reason_unready, "");
  EXPECT_EQ(ledger.Load().tokens_per_second, 500);
  EXPECT_EQ(ledger.description(), FakeReplicaDescription());
  EXPECT_EQ(ledger.UntilNextProbe(0), milliseconds(1000));
}

TEST(ReplicaLedgerTest, GivesNoWorkToARefusedReplicaUntilAnotherOneIsThere) {
  ReplicaLedger ledger("host:1", kProbe);
  EXPECT_FALSE(Probe(ledger, Serving(), FailedPrecondition("it serves another model folder")));
  EXPECT_FALSE(ledger.Load().ready);
  EXPECT_THAT(ledger.Load().reason_unready, HasSubstr("another model folder"));
  EXPECT_EQ(ledger.UntilNextProbe(0), milliseconds(100));
  EXPECT_FALSE(ledger.IsNew(FakeReplicaDescription()));  // the verdict stands
  Probe(ledger, Serving());
  EXPECT_FALSE(ledger.Load().ready);

  ReplicaLedger::ProbeAnswer other = Serving();
  other.description.identity = "identity-2";
  Probe(ledger, other);
  EXPECT_TRUE(ledger.Load().ready);
}

TEST(ReplicaLedgerTest, SendsNothingToARefusedReplicaEvenIfItIsTheOnlyOne) {
  ReplicaLedger ledger("host:1", kProbe);
  EXPECT_TRUE(ledger.CheckAdmitted().ok());  // whoever asks learns why it does not answer
  EXPECT_EQ(ledger.identity(), "");
  Probe(ledger, Serving());
  EXPECT_EQ(ledger.identity(), "identity-1");
  Probe(ledger, Unusable(State::kLost, "no route"));
  EXPECT_TRUE(ledger.CheckAdmitted().ok());

  ReplicaLedger::ProbeAnswer other = Serving();
  other.description.identity = "identity-2";
  Probe(ledger, other, FailedPrecondition("it serves another model folder"));
  EXPECT_EQ(ledger.CheckAdmitted().code(), StatusCode::kUnavailable);
  EXPECT_THAT(ledger.CheckAdmitted().message(), HasSubstr("another model folder"));
  Probe(ledger, Serving());
  EXPECT_TRUE(ledger.CheckAdmitted().ok());
}

TEST(ReplicaLedgerTest, TakesAReplicaThatContradictsItsDescriptionForAnotherOne) {
  for (const Status& error : {FailedPrecondition("another model folder is served here"),
                              OutOfRange("input is longer than allowed")}) {
    ReplicaLedger ledger("host:1", kProbe);
    EXPECT_FALSE(ledger.Admits(1));
    Probe(ledger, Serving());
    EXPECT_TRUE(ledger.Admits(FakeReplicaDescription().max_input_tokens));
    EXPECT_FALSE(ledger.Admits(FakeReplicaDescription().max_input_tokens + 1));
    const Status read = ledger.NoteError({error, true, false, /*within_limits=*/true});
    EXPECT_EQ(read.code(), StatusCode::kUnavailable);
    EXPECT_THAT(read.message(), HasSubstr("replica host:1 was replaced"));
    EXPECT_FALSE(ledger.Load().ready);
    EXPECT_TRUE(ledger.probe_now());
  }
  ReplicaLedger ledger("host:1", kProbe);
  Probe(ledger, Serving());
  EXPECT_EQ(ledger.NoteError({OutOfRange("too long"), true, false, false}).code(),
            StatusCode::kOutOfRange);
  EXPECT_TRUE(ledger.Load().ready);
}

TEST(ReplicaLedgerTest, CountsWhatItSentAndWhatOthersHaveQueued) {
  ReplicaLedger ledger("host:1", kProbe);
  Probe(ledger, Serving(70));
  EXPECT_EQ(ledger.Load().queued_tokens, 70);
  ledger.NoteSent(30);
  ledger.NoteSent(20);
  EXPECT_EQ(ledger.Load().queued_tokens, 120);
  Probe(ledger, Serving(90));  // 50 of which are ours
  EXPECT_EQ(ledger.Load().queued_tokens, 90);
  ledger.NoteEnded(30, 25);  // 20 of which are ours
  EXPECT_EQ(ledger.Load().queued_tokens, 25);
  ledger.NoteEnded(20, std::nullopt);
  EXPECT_EQ(ledger.Load().queued_tokens, 5);
  ledger.NoteSent(10);
  Probe(ledger, Serving(0));  // ours has not arrived there yet
  EXPECT_EQ(ledger.Load().queued_tokens, 10);
}

TEST(ReplicaLedgerTest, ForgetsTheQueueOfALostReplicaButNotItsOwnCalls) {
  ReplicaLedger ledger("host:1", kProbe);
  Probe(ledger, Serving(70));
  ledger.NoteSent(30);
  EXPECT_TRUE(Probe(ledger, Unusable(State::kLost, "no route")));
  EXPECT_EQ(ledger.Load().queued_tokens, 30);
  ledger.NoteEnded(30, std::nullopt);
  EXPECT_EQ(ledger.Load().queued_tokens, 0);
}

TEST(ReplicaLedgerTest, EndsTheCallsOfALostOrStalledReplicaOnly) {
  ReplicaLedger ledger("host:1", kProbe);
  Probe(ledger, Serving());
  EXPECT_TRUE(Probe(ledger, Unusable(State::kStalled, "a step is overdue")));
  EXPECT_THAT(ledger.Load().reason_unready, HasSubstr("a step is overdue"));
  EXPECT_TRUE(Probe(ledger, Unusable(State::kLost, "no route")));
  EXPECT_FALSE(Probe(ledger, Unusable(State::kNotServing, "the server is stopping")));
  EXPECT_FALSE(ledger.Load().ready);
}

TEST(ReplicaLedgerTest, AsksALostReplicaAgainWithGrowingGapsUntilItIsBack) {
  ReplicaLedger ledger("host:1", kProbe);
  for (const int expected : {100, 200, 400, 400}) {
    Probe(ledger, Unusable(State::kLost, "no route"));
    EXPECT_EQ(ledger.UntilNextProbe(0), milliseconds(expected));
  }
  Probe(ledger, Serving());
  EXPECT_EQ(ledger.UntilNextProbe(0), milliseconds(1000));
  Probe(ledger, Unusable(State::kLost, "no route"));
  EXPECT_EQ(ledger.UntilNextProbe(0), milliseconds(100));
}

TEST(ReplicaLedgerTest, StopsSendingAndAsksAtOnceWhenACallIsLost) {
  for (const StatusCode code : {StatusCode::kUnavailable, StatusCode::kCancelled}) {
    ReplicaLedger ledger("host:1", kProbe);
    Probe(ledger, Serving());
    const Status error = ledger.NoteError({Status(code, "connection reset"), false, false});
    EXPECT_EQ(error.code(), StatusCode::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("replica host:1 was lost: connection reset"));
    EXPECT_EQ(error.retry_after_seconds(), 1);
    EXPECT_FALSE(ledger.Load().ready);
    EXPECT_TRUE(ledger.probe_now());
    ledger.BeginProbe();
    EXPECT_FALSE(ledger.probe_now());
  }
}

TEST(ReplicaLedgerTest, StopsSendingToAReplicaThatSaysItStops) {
  ReplicaLedger ledger("host:1", kProbe);
  Probe(ledger, Serving());
  const Status error = ledger.NoteError({Unavailable("the server is stopping"), true, false});
  EXPECT_EQ(error.message(), "the server is stopping");
  EXPECT_FALSE(ledger.Load().ready);
  EXPECT_TRUE(ledger.probe_now());
}

TEST(ReplicaLedgerTest, StaysReadyWhenOnlyTheCallWentWrong) {
  ReplicaLedger ledger("host:1", kProbe);
  Probe(ledger, Serving());
  EXPECT_EQ(ledger.NoteError({ResourceExhausted("full"), true, false}).code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(ledger.NoteError({DeadlineExceeded("late"), false, false}).code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ledger.NoteError({Unavailable("reset"), false, true}).code(), StatusCode::kCancelled);
  EXPECT_EQ(ledger.NoteError({Unimplemented("what?"), false, false}).code(), StatusCode::kInternal);
  EXPECT_TRUE(ledger.Load().ready);
  EXPECT_FALSE(ledger.probe_now());
}

TEST(ReplicaLedgerTest, IsNotReadyOnceRetired) {
  ReplicaLedger ledger("host:1", kProbe);
  Probe(ledger, Serving());
  ledger.Retire();
  EXPECT_FALSE(ledger.Load().ready);
}

/// A call that the replica refuses because its queue is full.
void Refuse(ReplicaLedger& ledger, int64_t num_tokens) {
  ledger.NoteSent(num_tokens);
  ledger.NoteEnded(num_tokens, std::nullopt);
  const Status full = ResourceExhausted("the queue is full").WithRetryAfter(2);
  EXPECT_EQ(ledger.NoteError({full, true, false, true, num_tokens}).code(),
            StatusCode::kResourceExhausted);
}

TEST(ReplicaLedgerTest, DoesNotAskAFullReplicaAgainUntilItsQueueMoves) {
  ReplicaLedger ledger("host:1", kProbe);
  Probe(ledger, Serving());
  EXPECT_TRUE(ledger.CheckRoom(16).ok());
  ledger.NoteSent(30);
  ledger.NoteSent(20);
  Refuse(ledger, 16);
  EXPECT_EQ(ledger.CheckRoom(16).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ledger.CheckRoom(17).retry_after_seconds(), 2);
  ledger.NoteEnded(30, /*queued_tokens=*/20);
  EXPECT_TRUE(ledger.CheckRoom(16).ok());
  Refuse(ledger, 16);
  Probe(ledger, Serving());
  EXPECT_TRUE(ledger.CheckRoom(16).ok());
}

TEST(ReplicaLedgerTest, AsksAFullReplicaWhetherLessWouldFit) {
  ReplicaLedger ledger("host:1", kProbe);
  Probe(ledger, Serving());
  ledger.NoteSent(30);
  Refuse(ledger, 16);
  EXPECT_TRUE(ledger.CheckRoom(15).ok());
  Refuse(ledger, 8);
  EXPECT_FALSE(ledger.CheckRoom(8).ok());
  EXPECT_TRUE(ledger.CheckRoom(7).ok());
}

TEST(ReplicaLedgerTest, AsksAReplicaThatIsFullOfTheWorkOfOthersEachTime) {
  ReplicaLedger ledger("host:1", kProbe);
  Probe(ledger, Serving());
  Refuse(ledger, 16);
  EXPECT_TRUE(ledger.CheckRoom(16).ok());
  ledger.NoteSent(30);
  Refuse(ledger, 16);
  ledger.NoteEnded(30, std::nullopt);  // lost: nothing is left that could be answered
  EXPECT_TRUE(ledger.CheckRoom(16).ok());
}

}  // namespace
}  // namespace bouquet::ivy
