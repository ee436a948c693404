// The text format of Prometheus, value by value.
#include "batching/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace starling {
namespace {

using testing::HasSubstr;

TEST(Metrics, AreWrittenInPrometheusFormat) {
  Metrics m;
  m.count("starling_requests_total", "api=\"translate\",code=\"200\"");
  m.count("starling_requests_total", "api=\"translate\",code=\"200\"", 2);
  m.set("starling_queue_sentences", "", 7);
  m.set("starling_queue_sentences", "", 5);
  for (const double v : {1.0, 2.0, 3.0, 500.0}) m.observe("starling_batch_rows", "", v);
  const std::string text = m.text();
  EXPECT_THAT(
      text, HasSubstr("# HELP starling_requests_total Requests answered, by API and HTTP status.\n# TYPE starling_requests_total counter\n"
                      "starling_requests_total{api=\"translate\",code=\"200\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE starling_queue_sentences gauge\nstarling_queue_sentences 5\n"));
  EXPECT_THAT(text, HasSubstr("starling_batch_rows_bucket{le=\"1\"} 1\nstarling_batch_rows_bucket{le=\"2\"} 2\n"
                              "starling_batch_rows_bucket{le=\"4\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("starling_batch_rows_bucket{le=\"+Inf\"} 4\nstarling_batch_rows_sum 506\nstarling_batch_rows_count 4\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_resident_memory_bytes "));
  EXPECT_EQ(m.value("starling_requests_total", "api=\"translate\",code=\"200\""), 3);
  EXPECT_EQ(m.observed("starling_batch_rows"), 4);
}

TEST(Metrics, LabelsAreEscaped) { EXPECT_EQ(label_value("a\"b\\c\nd"), "a\\\"b\\\\c\\nd"); }

TEST(Metrics, AreThoseOfTheTable) {
  Metrics m;
  EXPECT_THROW(m.count("starling_other_total"), InternalError);
  EXPECT_THROW(m.count("starling_queue_sentences"), InternalError);
}

}  // namespace
}  // namespace starling
